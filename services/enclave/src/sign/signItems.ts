import { setImmediate } from 'node:timers/promises'
import type { TimedSample } from '@countersign/policy/core'
import {
  hashAuthorization,
  type LoggedItemsResponse,
  type Placed,
  parseTimestamp,
  ServiceError,
  type SignItem,
  type SignItemError,
  type SignItemResult,
  type SignItemsResponse,
  toPrefixedHex,
} from '@countersign/protocol/core'
import { type KeyWorker, MAX_TASKS } from '../keys/keyWorker.ts'
import type { StatementLog } from '../log/statementLog.ts'
import type { Time } from '../time/time.ts'
import type { PolicyTexts } from '../vault/policyMemory.ts'
import type { Batcher, Placement } from './batch.ts'
import type { Samples, SampleUse } from './samples.ts'
import type { SignedItem } from './signItem.ts'

export type SignItemsDeps = {
  keyWorker: KeyWorker
  batcher: Batcher
  samples: Samples
  time: Time
  policyTexts: PolicyTexts
  /** Present if the settings have a log. */
  statementLog?: StatementLog | undefined
}

type SignItemsParameters = {
  items: readonly SignItem[]
  /** The texts of policies that items name. */
  policies?: readonly string[] | undefined
  coordinatorKey: string
}

/** Signs the items of one call on arrival. They then wait for one quote together. A rejected item doesn't fail the others. */
export async function signItems(deps: SignItemsDeps, parameters: SignItemsParameters): Promise<SignItemsResponse> {
  const { outcomes, placing } = await signExpected(deps, parameters)
  const { batches: started, toResult } = await placing
  const quoted = await Promise.allSettled(started.map(({ signed }) => signed))
  const batches = quoted.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const results = outcomes.map((outcome): SignItemResult => {
    if ('error' in outcome) return outcome
    const result = toResult(outcome)
    if ('error' in result) return result
    const batch = quoted[result.batch]
    if (batch?.status !== 'fulfilled') return { error: 'quote_unavailable' }
    const { leaf: _, needs: __, countedFor: ___, revokes: ____, ...signed } = outcome
    return { ...signed, batch: batches.indexOf(batch.value), leafIndex: result.leafIndex }
  })
  return { batches, results }
}

/**
 * The same with a log. Answers when the quotes begin, so that witnesses cosign meanwhile. The answer holds only each statement's place in a
 * batch and in the log.
 */
export async function signLoggedItems(
  deps: SignItemsDeps & { statementLog: StatementLog },
  parameters: SignItemsParameters,
): Promise<LoggedItemsResponse> {
  const reservation = deps.statementLog.reserve(parameters.items)
  try {
    const { outcomes, placing } = await signExpected(deps, parameters, (signed) =>
      reservation.add(signed, parameters.coordinatorKey),
    )
    const { batches: started, placed, toResult } = await placing
    const log = await reservation.collect([...placed.values()])
    const batches = started.map(({ signed: _, ...batch }) => batch)
    return { batches, results: outcomes.map(toResult), log }
  } finally {
    reservation.close()
  }
}

type Outcome = SignedItem | SignItemError

/** A quote that could begin waits until the batcher has these leaves. `onSigned` runs before. */
async function signExpected(
  deps: SignItemsDeps,
  parameters: SignItemsParameters,
  onSigned: (outcomes: readonly Outcome[]) => void = () => {},
) {
  const onArrived = deps.batcher.expect(countExpected(parameters.items))
  try {
    const outcomes = await signAll(deps, parameters)
    onSigned(outcomes)
    return { outcomes, placing: place(deps.batcher, outcomes) }
  } finally {
    onArrived()
  }
}

/** Hashing typed data may take longer than a quote, which must not wait for it. */
function countExpected(items: readonly SignItem[]): number {
  return items.some(({ kind }) => kind === 'typed-data') ? Number.POSITIVE_INFINITY : items.length
}

/** Fewer aren't worth a separate message to the key worker. */
const MIN_TASKS = 8

/** How many items to verify in one turn: half of them, so that the key worker signs these while the others are verified. */
const countTurn = (items: number) => Math.min(MAX_TASKS, Math.max(MIN_TASKS, Math.ceil(items / 2)))

/**
 * A call can have 256 samples to verify, of 50 to 150 µs each, and quotes must not wait for all of them. So this yields after each message to
 * the key worker, which signs while the next samples are verified.
 */
async function signAll(deps: SignItemsDeps, { items, policies = [], coordinatorKey }: SignItemsParameters) {
  deps.time.assertKnown()
  // The policies of this call are available to it even if the cache evicts them.
  const given = new Map(policies.map((text) => [deps.policyTexts.add(text), text]))
  const findText = (hash: string) => given.get(hash) ?? deps.policyTexts.get(hash)
  const turns: Promise<Outcome[]>[] = []
  const count = countTurn(items.length)
  for (let first = 0; first < items.length; first += count) {
    if (first > 0) await setImmediate()
    const turn = items.slice(first, first + count)
    const signed = Promise.all(turn.map((item) => signWithSample(deps, item, { coordinatorKey, findText })))
    // It may fail while later turns still wait; all are awaited below.
    signed.catch(() => undefined)
    turns.push(signed)
  }
  return (await Promise.all(turns)).flat()
}

/** Reserves the sample for the item before signing. A repeated call gets it again, even after a failure. */
function signWithSample(
  { keyWorker, samples, time, statementLog }: SignItemsDeps,
  item: SignItem,
  { coordinatorKey, findText }: { coordinatorKey: string; findText(hash: string): string | undefined },
): Promise<Outcome> | SignItemError {
  const policy = item.vault === undefined ? undefined : findText(item.vault.policy)
  // Before reserving the sample: the caller retries with the policy's text.
  if (item.vault !== undefined && policy === undefined) return { error: 'policy_unknown' }
  const use = toSampleUse(item)
  if (use === undefined) return { error: 'invalid_request' }
  // Receipts of version 1 have no field for a beacon, so no one could check it.
  const isForVersion1 = item.kind === 'transaction' && item.statementVersion === 1
  if (isForVersion1 && 'kind' in item.witness) return { error: 'entropy_refused' }
  // They also have no field for a log proof.
  if (isForVersion1 && statementLog !== undefined) return { error: 'invalid_request' }
  const error = samples.use(item.witness, use)
  if (error !== undefined) return { error }
  const now = statementLog?.now() ?? time.now()
  if (policy === undefined) return keyWorker.sign(item, { coordinatorKey, now })
  const rules = { policy, sample: toTimedSample(samples, item) }
  return keyWorker.sign(item, { coordinatorKey, now, rules, log: statementLog?.times() })
}

/** The sample as proof of time, for a schedule, with the source from the settings that verified it. */
function toTimedSample(samples: Samples, { witness }: SignItem): TimedSample | undefined {
  const source = samples.findSource(witness)
  const timeMs = parseTimestamp(witness.timestamp)
  return source === undefined || timeMs === undefined ? undefined : { source, timeMs }
}

/** Undefined for an authorization that can't be hashed. The signing code checks a transaction's digest. */
function toSampleUse(item: SignItem): SampleUse | undefined {
  const { kind, keyId } = item
  if (kind === 'transaction') return { kind, keyId, digest: item.digest }
  if (kind !== 'authorization') return { kind: 'off-chain' }
  try {
    return { kind, keyId, digest: toPrefixedHex(hashAuthorization(item.authorization)) }
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

/** Once the quotes have started: the items' batches, and the place of each item. */
async function place(batcher: Batcher, outcomes: readonly Outcome[]) {
  const signed = outcomes.filter((outcome): outcome is SignedItem => !('error' in outcome))
  const settled = await Promise.allSettled(signed.map(({ leaf }) => batcher.add(leaf)))
  const placed = new Map<SignedItem, Placement>()
  for (const [index, outcome] of settled.entries()) {
    const item = signed[index]
    if (item !== undefined && outcome.status === 'fulfilled') placed.set(item, outcome.value)
  }
  const batches = [...new Set([...placed.values()].map(({ batch }) => batch))]
  function toResult(outcome: Outcome): SignItemError | Placed {
    if ('error' in outcome) return outcome
    const placement = placed.get(outcome)
    if (placement === undefined) return { error: 'quote_unavailable' }
    return { batch: batches.indexOf(placement.batch), leafIndex: placement.leafIndex }
  }
  return { batches, placed, toResult }
}
