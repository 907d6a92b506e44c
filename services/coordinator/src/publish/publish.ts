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
  /** Since the pin, for what is in no publication and cannot be published now; since its creation, for a publication. */
  publishDeadlineMs: number
  /** The most gas that new publications may ask for in 24 hours. Unset: any. */
  gasPerDay?: bigint | undefined
  /** From `createOutages`, kept from run to run. */
  outages: Outages
}

/** Of this process: since when it has claimed nothing, though it tried; and since when each run has left proofs that the node refuses. */
type Outages = { failingSince: number | undefined; refusingSince: number | undefined }

export const createOutages = (): Outages => ({ failingSince: undefined, refusingSince: undefined })

/** What one run leaves for the next, by slug. */
type PublishRun = PublishDeps & { left: Set<string> }

const DAY_MS = 86_400_000
/** So many proofs that are refused one by one, without a reason, are the node's fault, and no more of them are looked for. */
const MAX_LEFT = 8

/**
 * Puts whatever is due into transactions and sends them. A crash anywhere is healed by the next run: before the claim nothing has
 * happened, and after it the stored bytes are all that will ever be sent.
 *
 * Throws what the job queue should try again (`chain_unavailable`, `publisher_not_allowed`, `insufficient_funds`, `gas_budget_spent` and the like);
 * the rest is not claimed then, and what is overdue fails, unless it only waits for gas.
 */
export async function publishDue(deps: PublishDeps): Promise<{ published: number }> {
  const { outages } = deps
  const run: PublishRun = { ...deps, left: new Set() }
  try {
    const published = await publishAll(run)
    Object.assign(outages, createOutages())
    return { published }
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    const isRefused = error.code === 'call_reverted'
    if (run.left.size === 0 && !isRefused) outages.refusingSince = undefined
    // The chain works then.
    if (error.code === 'gas_budget_spent') outages.failingSince = undefined
    // What it does not refuse may only wait for gas.
    else if (isRefused) await giveUpOverdue(deps, 'refusingSince', [...run.left])
    else await giveUpOverdue(deps, 'failingSince')
    throw error
  }
}

async function publishAll(run: PublishRun): Promise<number> {
  const { store, chain } = run
  let published = 0
  const findDue = async () => (await store.findDue()).filter(({ slug }) => !run.left.has(slug))
  let due = await findDue()
  if (due.length > 0) {
    // A nonce read from the node of another chain could leave a gap that nothing fills.
    await chain.assertReady()
    await sendUnsent(run)
  }
  while (due.length > 0) {
    published += await publishGroup(run, takeGroup(due))
    due = await findDue()
  }
  if (run.left.size > 0) throw createRefusal(run)
  return published
}

/** One failure says little: a node may be a minute behind the worker at a start, or busy. */
const GIVE_UP_AFTER_MS = 1_800_000

/** Only after attempts: a deadline can pass while no worker runs, and a worker's clock can be ahead. */
async function giveUpOverdue(deps: PublishDeps, outage: keyof Outages, slugs?: readonly string[]): Promise<void> {
  const { store, clock, log, publishDeadlineMs, gasPerDay, outages } = deps
  const now = clock.now()
  // A clock that is put back begins anew.
  const since = Math.min(outages[outage] ?? now, now)
  outages[outage] = since
  // A proof that waited for gas is old, and was not tried for long.
  const triedMs = gasPerDay === undefined ? GIVE_UP_AFTER_MS : Math.max(GIVE_UP_AFTER_MS, publishDeadlineMs)
  if (now - since < triedMs) return
  const count = await store.failOverdue({ pinnedBefore: now - publishDeadlineMs, slugs })
  if (count > 0) log.warn({ msg: 'Gave up proofs', code: 'publish_deadline', count })
}

/** As many from the front as each of them allows. */
export function takeGroup<Proof extends { publishLimit: number }>(due: readonly Proof[]): Proof[] {
  const group: Proof[] = []
  let limit = Number.POSITIVE_INFINITY
  for (const proof of due) {
    limit = Math.min(limit, proof.publishLimit)
    if (group.length >= limit) break
    group.push(proof)
  }
  return group
}

/** One transaction; or, where the contract refuses it, one for each half, so that a bad proof fails alone. */
async function publishGroup(run: PublishRun, group: readonly DueProof[]): Promise<number> {
  const { chain } = run
  const call: Call = { to: chain.contract, data: encodePublish(group) }
  const estimate = await estimateGas(chain, call)
  if (typeof estimate === 'bigint') return claimAndSend(run, { group, call, gas: withMargin(estimate) })
  const [first, second] = group
  if (first === undefined) return 0
  if (second === undefined) {
    await refuseProof(run, first, estimate.reason)
    return 0
  }
  const middle = Math.ceil(group.length / 2)
  return (await publishGroup(run, group.slice(0, middle))) + (await publishGroup(run, group.slice(middle)))
}

/** A refusal counts against the proofs only if this account may publish at all: not every node reports the reason. */
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

/** Fails the proof if the contract says why. A refusal without its reason may be the node's, and what fails does not come back. */
async function refuseProof(
  { store, log, left }: PublishRun,
  { slug }: DueProof,
  reason: string | undefined,
): Promise<void> {
  if (!isOfContract(reason)) {
    log.warn({ msg: 'Left a proof that the node refuses', slug, reason })
    left.add(slug)
    if (left.size >= MAX_LEFT) throw createRefusal({ left })
    return
  }
  if (!(await store.failDue({ slug, failure: 'publish_reverted' }))) return
  log.warn({ msg: 'Gave up proofs', code: 'publish_reverted', count: 1, reason })
}

function createRefusal({ left }: Pick<PublishRun, 'left'>): ChainError {
  return new ChainError('call_reverted', { details: `without an error of the contract: ${left.size} proofs` })
}

async function claimAndSend(
  { store, chain, clock, log, gasPerDay, outages }: PublishDeps,
  { group, call, gas }: { group: readonly DueProof[]; call: Call; gas: bigint },
): Promise<number> {
  const { chainId, account, contract } = chain
  const fees = await chain.getFees()
  // After the newest block, not after the mempool: what waits there with our nonce and is not in the database may say what we
  // are about to say, and of one nonce only one is mined.
  const chainNonce = await chain.getNonce('latest')
  const ownNonce = await store.findNextNonce({ chainId, account })
  // Rare: somebody else used the account. A claim far ahead, and all that come after it, would never be mined: one false answer must
  // not be enough.
  if (chainNonce > ownNonce && (await chain.getNonce('latest')) !== chainNonce) {
    throw new ChainError('chain_unavailable', { details: 'two answers about the nonce differ' })
  }
  const nonce = Math.max(ownNonce, chainNonce)
  // After the nonce was chosen: what another worker claims from now on takes the nonce away.
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
  // Somebody else has the nonce, or some of the proofs; what is left is still due.
  if (!isClaimed) return 0
  outages.failingSince = undefined
  throwIfUnpaid(await sendStored({ store, chain, clock, log }, transaction))
  return group.length
}

/**
 * What an empty account could not pay must be sent before anything more is claimed: each run would put the few proofs that are due into a
 * nonce of their own. What no node has for other reasons is sent too, which is always safe.
 */
async function sendUnsent(deps: PublishDeps): Promise<void> {
  const { store, chain } = deps
  const { chainId, account } = chain
  const unsent = await store.findUnsent({ chainId, account })
  const nextNonce = unsent.length === 0 ? 0 : await chain.getNonce('latest')
  for (const transaction of unsent) {
    const outcome = await sendStored(deps, transaction)
    // Nothing waits for a nonce that is used, and some nodes look at the balance before the nonce.
    if (transaction.nonce >= nextNonce) throwIfUnpaid(outcome)
    if (outcome !== 'sent' && outcome.code === 'chain_unavailable') return
  }
}

function throwIfUnpaid(outcome: 'sent' | ChainError): void {
  if (outcome !== 'sent' && outcome.code === 'insufficient_funds') throw outcome
}

/**
 * Sends what is stored. A failure is not thrown: the node may have the bytes all the same, and sending them
 * again is always safe. Returns what happened.
 */
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

/** A fifth more, rounded up: the state may change until the call is mined. */
export function withMargin(gas: bigint): bigint {
  return (gas * 6n + 4n) / 5n
}
