import type { DueProof } from '../store/publications.ts'
import { ChainError } from './chain/chainError.ts'
import { encodePublish } from './chain/contract.ts'
import { isOfContract } from './chain/nodeError.ts'
import type { Call, Chain } from './chain/viemChain.ts'
import { type AnchorDeps, publishAnchors } from './publishAnchors.ts'
import { claimAndSend, createOutages, type Outages, type SendDeps, sendUnsent, withMargin } from './send.ts'

export type PublishDeps = SendDeps & {
  /** Counts from the pin for a proof without a publication, and from its creation for a publication. */
  publishDeadlineMs: number
  /** Set if signatures with a log entry are published as checkpoints. */
  anchoring?: AnchorDeps | undefined
}

/** `skipped` are the slugs of proofs that this run leaves to the next. */
type PublishRun = PublishDeps & { skipped: Set<string> }

/** If the node rejects so many single proofs without a reason, the node is at fault and the run ends. */
const MAX_SKIPPED = 8

/**
 * Publishes all due proofs. The next run recovers from a crash: before the claim nothing has happened, and after it only the stored bytes
 * are ever sent.
 *
 * Throws errors that the job queue should retry, such as `chain_unavailable`, `publisher_not_allowed`, `insufficient_funds` and
 * `gas_budget_spent`. The remaining proofs are then not claimed. Overdue proofs fail, unless they only wait for gas.
 */
export async function publishDue(deps: PublishDeps): Promise<{ waitMs: number | undefined }> {
  const { outages } = deps
  const run: PublishRun = { ...deps, skipped: new Set() }
  try {
    const outcome = await publishAll(run)
    Object.assign(outages, createOutages())
    return outcome
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

async function publishAll(run: PublishRun): Promise<{ waitMs: number | undefined }> {
  const { store, chain, anchoring } = run
  let isPrepared = false
  const prepare = async () => {
    if (isPrepared) return
    // A nonce from another chain's node could leave a gap that is never filled.
    await chain.assertReady()
    await sendUnsent(run)
    isPrepared = true
  }
  const anchors = anchoring && (await publishAnchors({ ...run, anchoring }, prepare))
  const unlogged = anchors && { also: anchors.late }
  const findDue = async () => (await store.findDue({ unlogged })).filter(({ slug }) => !run.skipped.has(slug))
  let due = await findDue()
  if (due.length > 0) await prepare()
  while (due.length > 0) {
    await publishGroup(run, selectGroup(due))
    due = await findDue()
  }
  if (run.skipped.size > 0) throw createRefusal(run)
  if (anchors?.failure !== undefined) throw anchors.failure
  return { waitMs: anchors?.waitMs }
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
async function publishGroup(run: PublishRun, group: readonly DueProof[]): Promise<void> {
  const { chain } = run
  const call: Call = { to: chain.contract, data: encodePublish(group) }
  const estimate = await estimateGas(chain, call)
  if (typeof estimate === 'bigint') {
    await claimAndSend(run, { group, call, gas: withMargin(estimate) })
    return
  }
  const [first, second] = group
  if (first === undefined) return
  if (second === undefined) return rejectProof(run, first, estimate.reason)
  const middle = Math.ceil(group.length / 2)
  await publishGroup(run, group.slice(0, middle))
  await publishGroup(run, group.slice(middle))
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
