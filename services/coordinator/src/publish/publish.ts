import type { Log } from '@countersign/service'
import type { DueProof, PublicationStore, PublicationTransaction, SignedTransaction } from '../store/publications.ts'
import type { Clock } from '../system.ts'
import { ChainError } from './chain/chainError.ts'
import { encodePublish } from './chain/contract.ts'
import { isOfContract } from './chain/nodeError.ts'
import type { Call, Chain } from './chain/viemChain.ts'

export type PublishDeps = {
  store: PublicationStore
  chain: Chain
  clock: Clock
  log: Log
  /** Counts from the pin for a proof without a publication, and from its creation for a publication. */
  publishDeadlineMs: number
  /** The gas limit of all new publications in 24 hours. Unset: none. */
  gasPerDay?: bigint | undefined
  /** From `createOutages`, shared by all runs. */
  outages: Outages
}

/** Since when this process has failed to claim anything, and since when every run has skipped proofs that the node rejects. */
type Outages = { failingSince: number | undefined; refusingSince: number | undefined }

export const createOutages = (): Outages => ({ failingSince: undefined, refusingSince: undefined })

/** `skipped` are the slugs of proofs that this run leaves to the next. */
type PublishRun = PublishDeps & { skipped: Set<string> }

const DAY_MS = 86_400_000
/** If the node rejects so many single proofs without a reason, the node is at fault and the run ends. */
const MAX_SKIPPED = 8

/**
 * Publishes all due proofs. The next run recovers from a crash: before the claim nothing has happened, and after it only the stored bytes
 * are ever sent.
 *
 * Throws errors that the job queue should retry, such as `chain_unavailable`, `publisher_not_allowed`, `insufficient_funds` and
 * `gas_budget_spent`. The remaining proofs are then not claimed. Overdue proofs fail, unless they only wait for gas.
 */
export async function publishDue(deps: PublishDeps): Promise<{ published: number }> {
  const { outages } = deps
  const run: PublishRun = { ...deps, skipped: new Set() }
  try {
    const published = await publishAll(run)
    Object.assign(outages, createOutages())
    return { published }
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    const isRefused = error.code === 'call_reverted'
    if (run.skipped.size === 0 && !isRefused) outages.refusingSince = undefined
    // Reached only if the chain works.
    if (error.code === 'gas_budget_spent') outages.failingSince = undefined
    // Only skipped proofs: others may only wait for gas.
    else if (isRefused) await failOverdue(deps, 'refusingSince', [...run.skipped])
    else await failOverdue(deps, 'failingSince')
    throw error
  }
}

async function publishAll(run: PublishRun): Promise<number> {
  const { store, chain } = run
  let published = 0
  const findDue = async () => (await store.findDue()).filter(({ slug }) => !run.skipped.has(slug))
  let due = await findDue()
  if (due.length > 0) {
    // A nonce from another chain's node could leave a gap that is never filled.
    await chain.assertReady()
    await sendUnsent(run)
  }
  while (due.length > 0) {
    published += await publishGroup(run, selectGroup(due))
    due = await findDue()
  }
  if (run.skipped.size > 0) throw createRefusal(run)
  return published
}

/** One failure isn't enough: a node may be busy or a minute behind. */
const FAIL_AFTER_MS = 1_800_000

/** Fails proofs only after attempts, because a deadline can pass while no worker runs, and a worker's clock can be ahead. */
async function failOverdue(deps: PublishDeps, outage: keyof Outages, slugs?: readonly string[]): Promise<void> {
  const { store, clock, log, publishDeadlineMs, gasPerDay, outages } = deps
  const now = clock.now()
  // Starts again if the clock was set back.
  const since = Math.min(outages[outage] ?? now, now)
  outages[outage] = since
  // A proof that waited for gas may be old without any attempts.
  const triedMs = gasPerDay === undefined ? FAIL_AFTER_MS : Math.max(FAIL_AFTER_MS, publishDeadlineMs)
  if (now - since < triedMs) return
  const count = await store.failOverdue({ pinnedBefore: now - publishDeadlineMs, slugs })
  if (count > 0) log.warn({ msg: 'Gave up proofs', code: 'publish_deadline', count })
}

/** Selects as many proofs from the front as all of them allow. */
export function selectGroup<Proof extends { publishLimit: number }>(due: readonly Proof[]): Proof[] {
  const group: Proof[] = []
  let limit = Number.POSITIVE_INFINITY
  for (const proof of due) {
    limit = Math.min(limit, proof.publishLimit)
    if (group.length >= limit) break
    group.push(proof)
  }
  return group
}

/** Publishes a group in one transaction. If the contract rejects it, publishes each half, so that only the bad proof fails. */
async function publishGroup(run: PublishRun, group: readonly DueProof[]): Promise<number> {
  const { chain } = run
  const call: Call = { to: chain.contract, data: encodePublish(group) }
  const estimate = await estimateGas(chain, call)
  if (typeof estimate === 'bigint') return claimAndSend(run, { group, call, gas: withMargin(estimate) })
  const [first, second] = group
  if (first === undefined) return 0
  if (second === undefined) {
    await rejectProof(run, first, estimate.reason)
    return 0
  }
  const middle = Math.ceil(group.length / 2)
  return (await publishGroup(run, group.slice(0, middle))) + (await publishGroup(run, group.slice(middle)))
}

/** Returns the gas, or the reason of a revert. Checks first that this account may publish at all, because not every node reports the reason. */
async function estimateGas(chain: Chain, call: Call): Promise<bigint | { reason: string | undefined }> {
  try {
    return await chain.estimateGas(call)
  } catch (error) {
    if (!(error instanceof ChainError) || error.code !== 'call_reverted') throw error
    await chain.assertReady()
    if (error.details === 'NotPublisher') throw new ChainError('publisher_not_allowed')
    return { reason: error.details }
  }
}

/** Fails the proof if the contract gives a reason. Otherwise the node may be at fault, and a failed proof can't be retried. */
async function rejectProof(
  { store, log, skipped }: PublishRun,
  { slug }: DueProof,
  reason: string | undefined,
): Promise<void> {
  if (!isOfContract(reason)) {
    log.warn({ msg: 'Skipped a proof that the node rejects', slug, reason })
    skipped.add(slug)
    if (skipped.size >= MAX_SKIPPED) throw createRefusal({ skipped })
    return
  }
  if (!(await store.failDue({ slug, failure: 'publish_reverted' }))) return
  log.warn({ msg: 'Gave up proofs', code: 'publish_reverted', count: 1, reason })
}

function createRefusal({ skipped }: Pick<PublishRun, 'skipped'>): ChainError {
  return new ChainError('call_reverted', { details: `without an error of the contract: ${skipped.size} proofs` })
}

async function claimAndSend(
  { store, chain, clock, log, gasPerDay, outages }: PublishDeps,
  { group, call, gas }: { group: readonly DueProof[]; call: Call; gas: bigint },
): Promise<number> {
  const { chainId, account, contract } = chain
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
  if (gasPerDay !== undefined) {
    const spent = await store.sumGas({ chainId, account, since: clock.now() - DAY_MS })
    if (spent + gas > gasPerDay) throw new ChainError('gas_budget_spent', { details: `${spent} of ${gasPerDay} gas` })
  }
  const signed = await chain.sign({ nonce, ...call, gas, ...fees })
  const transaction: PublicationTransaction = { ...signed, kind: 'publish', gas, ...fees }
  const slugs = group.map(({ slug }) => slug)
  const isClaimed = await store.claim({
    chainId,
    account,
    nonce,
    contract,
    calldata: call.data,
    slugs,
    transaction,
    now: clock.now(),
  })
  // Another worker has claimed the nonce or some of the proofs. The others are still due.
  if (!isClaimed) return 0
  outages.failingSince = undefined
  throwIfUnpaid(await sendStored({ store, chain, clock, log }, transaction))
  return group.length
}

/**
 * Sends stored transactions that no node has. If the account was empty, they must be sent before any further claim. Otherwise each run
 * would claim another nonce for a few proofs.
 */
async function sendUnsent(deps: PublishDeps): Promise<void> {
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
  { store, chain, clock, log }: Pick<PublishDeps, 'store' | 'chain' | 'clock' | 'log'>,
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
