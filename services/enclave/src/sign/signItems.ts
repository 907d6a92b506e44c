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
  /** Where the settings have a log. */
  statementLog?: StatementLog | undefined
}

type SignItemsParameters = {
  items: readonly SignItem[]
  /** Texts of policies that items name. */
  policies?: readonly string[] | undefined
  coordinatorKey: string
}

/**
 * Signs the items of one call on arrival; then they wait for a quote together, so that a call needs one quote and not several.
 * A refused item does not fail the others.
 */
export async function signItems(deps: SignItemsDeps, parameters: SignItemsParameters): Promise<SignItemsResponse> {
  const { outcomes, placing } = await signExpected(deps, parameters)
  const { batches: begun, toResult } = await placing
  const quoted = await Promise.allSettled(begun.map(({ signed }) => signed))
  const batches = quoted.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const results = outcomes.map((outcome): SignItemResult => {
    if ('error' in outcome) return outcome
    const result = toResult(outcome)
    if ('error' in result) return result
    const batch = quoted[result.batch]
    if (batch?.status !== 'fulfilled') return { error: 'quote_unavailable' }
    const { leaf: _, needs: __, ...signed } = outcome
    return { ...signed, batch: batches.indexOf(batch.value), leafIndex: result.leafIndex }
  })
  return { batches, results }
}

/**
 * The same with a log. It answers when the quotes begin, so that witnesses cosign while they are made. Of each statement the answer has only
 * the places of its leaf in a batch and in the log.
 */
export async function signLoggedItems(
  deps: SignItemsDeps & { statementLog: StatementLog },
  parameters: SignItemsParameters,
): Promise<LoggedItemsResponse> {
  const room = deps.statementLog.reserve(parameters.items)
  try {
    const { outcomes, placing } = await signExpected(deps, parameters, (signed) =>
      room.hold(signed, parameters.coordinatorKey),
    )
    const { batches: begun, placed, toResult } = await placing
    const log = await room.collect([...placed.values()])
    const batches = begun.map(({ signed: _, ...batch }) => batch)
    return { batches, results: outcomes.map(toResult), log }
  } finally {
    room.close()
  }
}

type Outcome = SignedItem | SignItemError

/** A quote that could begin meanwhile waits for them, until their leaves are with the batcher. `hold` comes before. */
async function signExpected(
  deps: SignItemsDeps,
  parameters: SignItemsParameters,
  hold: (outcomes: readonly Outcome[]) => void = () => {},
) {
  const onArrived = deps.batcher.expect(countExpected(parameters.items))
  try {
    const outcomes = await signAll(deps, parameters)
    hold(outcomes)
    return { outcomes, placing: place(deps.batcher, outcomes) }
  } finally {
    onArrived()
  }
}

/** To hash typed data may take longer than a quote, which is not to wait for it. */
function countExpected(items: readonly SignItem[]): number {
  return items.some(({ kind }) => kind === 'typed-data') ? Number.POSITIVE_INFINITY : items.length
}

/** Fewer are not worth a message of their own to the key worker. */
const MIN_TASKS = 8

/** How many of so many items are verified in one turn: half of them, so that the key worker signs these while the others are verified. */
const countTurn = (items: number) => Math.min(MAX_TASKS, Math.max(MIN_TASKS, Math.ceil(items / 2)))

/**
 * A call can have 256 samples to verify, of 50 to 150 µs each, and quotes must not wait for all of them. So others have their turn after
 * as many as make one message to the key worker, which signs while the next are verified.
 */
async function signAll(deps: SignItemsDeps, { items, policies = [], coordinatorKey }: SignItemsParameters) {
  deps.time.assertKnown()
  // Those of this call are at hand for it whatever else the memory has to forget meanwhile.
  const given = new Map(policies.map((text) => [deps.policyTexts.add(text), text]))
  const findText = (hash: string) => given.get(hash) ?? deps.policyTexts.get(hash)
  const turns: Promise<Outcome[]>[] = []
  const count = countTurn(items.length)
  for (let first = 0; first < items.length; first += count) {
    if (first > 0) await setImmediate()
    const turn = items.slice(first, first + count)
    const signed = Promise.all(turn.map((item) => signWithSample(deps, item, { coordinatorKey, findText })))
    // It may fail while later turns still wait for theirs; all are awaited below.
    signed.catch(() => undefined)
    turns.push(signed)
  }
  return (await Promise.all(turns)).flat()
}

/** The sample is kept for the item before anything is signed, whatever becomes of that: a repeated call gets it again. */
function signWithSample(
  { keyWorker, samples, time, statementLog }: SignItemsDeps,
  item: SignItem,
  { coordinatorKey, findText }: { coordinatorKey: string; findText(hash: string): string | undefined },
): Promise<Outcome> | SignItemError {
  const policy = item.vault === undefined ? undefined : findText(item.vault.policy)
  // Before the sample is kept: the caller asks again with the text.
  if (item.vault !== undefined && policy === undefined) return { error: 'policy_unknown' }
  const use = toSampleUse(item)
  if (use === undefined) return { error: 'invalid_request' }
  // Receipts of version 1 have no place for it, so nobody could check it there.
  const isForVersion1 = item.kind === 'transaction' && item.statementVersion === 1
  if (isForVersion1 && 'kind' in item.witness) return { error: 'entropy_refused' }
  // Nor for a proof that they are in the log.
  if (isForVersion1 && statementLog !== undefined) return { error: 'invalid_request' }
  const error = samples.use(item.witness, use)
  if (error !== undefined) return { error }
  const now = statementLog?.now() ?? time.now()
  if (policy === undefined) return keyWorker.sign(item, { coordinatorKey, now })
  return keyWorker.sign(item, { coordinatorKey, now, rules: { policy, sample: toTimedSample(samples, item) } })
}

/** The sample as a proof of time, for a schedule: its source is that of the settings by which it was verified. */
function toTimedSample(samples: Samples, { witness }: SignItem): TimedSample | undefined {
  const source = samples.findSource(witness)
  const timeMs = parseTimestamp(witness.timestamp)
  return source === undefined || timeMs === undefined ? undefined : { source, timeMs }
}

/** Undefined for an authorization that cannot be hashed. Whether the digest of a transaction is its own is checked where it is signed. */
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

/** Once the quotes have begun: the batches of the items, and the place of each item. */
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
