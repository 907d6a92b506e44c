import type { Log } from '@countersign/service'
import type { PublishedAnchor } from '../store/anchors.ts'
import type { DueProof, PublicationStore, PublicationTransaction, SignedTransaction } from '../store/publications.ts'
import type { Clock } from '../system.ts'
import { ChainError } from './chain/chainError.ts'
import type { Call, Chain } from './chain/viemChain.ts'

export type SendDeps = {
  store: PublicationStore
  chain: Chain
  clock: Clock
  log: Log
  /** The gas limit of all new publications in 24 hours. Unset: none. */
  gasPerDay?: bigint | undefined
  /** From `createOutages`, shared by all runs. */
  outages: Outages
}

/** Since when this process has failed to claim anything, and since when every run has skipped proofs that the node rejects. */
export type Outages = { failingSince: number | undefined; refusingSince: number | undefined }

export const createOutages = (): Outages => ({ failingSince: undefined, refusingSince: undefined })

const DAY_MS = 86_400_000

/** Stores a transaction for these proofs and sends it. Returns false if another worker was first. */
export async function claimAndSend(
  deps: SendDeps,
  parameters: {
    group: readonly Pick<DueProof, 'slug'>[]
    call: Call
    gas: bigint
    anchor?: { published: PublishedAnchor; head: number }
  },
): Promise<boolean> {
  const { store, chain, clock, log, outages } = deps
  const { group, call, gas, anchor } = parameters
  const { chainId, account } = chain
  const fees = await chain.getFees()
  // The nonce after the newest block, not after the mempool: a transaction there that isn't in the database may publish the same proofs,
  // and only one transaction per nonce is mined.
  const chainNonce = await chain.getNonce('latest')
  const ownNonce = await store.findNextNonce({ chainId, account })
  // Rare: another sender used the account. Asks twice, because one wrong answer would leave a nonce gap and block all later transactions.
  if (chainNonce > ownNonce && (await chain.getNonce('latest')) !== chainNonce) {
    throw new ChainError('chain_unavailable', { details: 'two answers about the nonce differ' })
  }
  const nonce = Math.max(ownNonce, chainNonce)
  // Checked after the nonce was chosen: a worker that claims gas from now on also takes the nonce.
  await assertWithinBudget(deps, gas)
  const signed = await chain.sign({ nonce, ...call, gas, ...fees })
  const transaction: PublicationTransaction = { ...signed, kind: 'publish', gas, ...fees }
  const slugs = group.map(({ slug }) => slug)
  const isClaimed = await store.claim({
    chainId,
    account,
    nonce,
    contract: call.to,
    calldata: call.data,
    slugs,
    anchor,
    transaction,
    now: clock.now(),
  })
  // Another worker has claimed the nonce or some of the proofs. The others are still due.
  if (!isClaimed) return false
  outages.failingSince = undefined
  throwIfUnpaid(await sendStored({ store, chain, clock, log }, transaction))
  return true
}

/** Throws `gas_budget_spent` if so much gas would exceed the limit of 24 hours. */
export async function assertWithinBudget(
  { store, chain, clock, gasPerDay }: Pick<SendDeps, 'store' | 'chain' | 'clock' | 'gasPerDay'>,
  gas: bigint,
): Promise<void> {
  if (gasPerDay === undefined) return
  const { chainId, account } = chain
  const spent = await store.sumGas({ chainId, account, since: clock.now() - DAY_MS })
  if (spent + gas > gasPerDay) throw new ChainError('gas_budget_spent', { details: `${spent} of ${gasPerDay} gas` })
}

/**
 * Sends stored transactions that no node has. If the account was empty, they must be sent before any further claim. Otherwise each run
 * would claim another nonce for a few proofs.
 */
export async function sendUnsent(deps: SendDeps): Promise<void> {
  const { store, chain } = deps
  const { chainId, account } = chain
  const unsent = await store.findUnsent({ chainId, account })
  const nextNonce = unsent.length === 0 ? 0 : await chain.getNonce('latest')
  for (const transaction of unsent) {
    const outcome = await sendStored(deps, transaction)
    // A used nonce doesn't block others, and some nodes check the balance before the nonce.
    if (transaction.nonce >= nextNonce) throwIfUnpaid(outcome)
    if (outcome !== 'sent' && outcome.code === 'chain_unavailable') return
  }
}

function throwIfUnpaid(outcome: 'sent' | ChainError): void {
  if (outcome !== 'sent' && outcome.code === 'insufficient_funds') throw outcome
}

/** Sends a stored transaction. Returns failures instead of throwing: the node may have the bytes, and sending them again is safe. */
export async function sendStored(
  { store, chain, clock, log }: Pick<SendDeps, 'store' | 'chain' | 'clock' | 'log'>,
  { hash, raw, kind }: SignedTransaction,
): Promise<'sent' | ChainError> {
  try {
    await chain.send(raw)
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    log.warn({ msg: 'Could not send a transaction', hash, name: kind, code: error.code, reason: error.details })
    return error
  }
  await store.markSent({ hash, now: clock.now() })
  log.info({ msg: 'Sent a transaction', hash, name: kind })
  return 'sent'
}

/** Adds a fifth, rounded up, because the state may change before the call is mined. */
export function withMargin(gas: bigint): bigint {
  return (gas * 6n + 4n) / 5n
}
