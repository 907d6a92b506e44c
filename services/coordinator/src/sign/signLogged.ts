import type { WitnessPolicy } from '@countersign/log'
import type { AppendedEntries, SignedBatch, SignedStatement } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { toCosigned } from '../enclave/cosignedRelease.ts'
import { findLogKey } from '../enclave/findLogKey.ts'
import { CoordinatorError, invalidAnswer } from '../errors.ts'
import type { Claim, EnclaveTerms, LogKeeper, Schedule } from '../ports.ts'
import { toReason } from '../toReason.ts'
import { assertItemSigned, assertSignedAt, type CheckedItem } from './checkItem.ts'
import { countBytes } from './countBytes.ts'
import { findInLog, type LoggedItem, toTimes } from './logEntries.ts'
import type { Releases } from './releases.ts'
import { failed, type Placing, type SigningRequest, type SigningResult, type SignProgress } from './request.ts'
import { type SettleDeps, settle } from './settle.ts'
import type { BatchVerifier, VerifiedBatch } from './verifyBatch.ts'

/** What signing with a log needs beside the rest. */
export type Logging = {
  keeper: Pick<LogKeeper, 'record' | 'cosign' | 'giveUp'>
  releases: Releases
  /** The earlier signature of the same digest, if it is stored. */
  findSigned(request: SigningRequest): Promise<SigningResult | undefined>
  schedule: Schedule
}

export type SignLoggedDeps = SettleDeps & {
  verifyBatch: BatchVerifier
  logging?: Logging | undefined
  log: Pick<Log, 'warn'>
}

type LoggedAnswer = EnclaveTerms & { log: AppendedEntries | null }

/** How long a signature may take from the enclave's answer until its statement is asked for. The enclave itself erases after 30 s. */
const LIMIT_MS = 10_000
const GIVE_UP_MS = 1_000
/** How often and for how long the signature of another who was first is looked for. */
const POLL_MS = 50
const PATIENCE_MS = 3_000

/**
 * The rest of signing where the enclave has a log, in the order of decision 23: entries and claims are written, witnesses cosign, the enclave
 * gives the statements, they are stored. The quote is verified meanwhile. Whatever fails after the enclave has signed is dropped there, and is never
 * asked for again: who was told of a failure gets no signature later, unless it was the database that failed while it stored one.
 */
export async function signLogged(
  deps: SignLoggedDeps,
  { log: appended, ...terms }: LoggedAnswer,
  placed: readonly Placing[],
  answer: SignProgress['answer'],
): Promise<void> {
  const [first] = placed
  if (first === undefined) return
  const { bootId } = first.batch
  const { logging } = deps
  if (logging === undefined || appended === null) {
    const msg = 'Refused what an enclave with a log signed: this coordinator has no LOG_WITNESSES'
    if (logging === undefined) deps.log.warn({ msg, bootId })
    const reason = logging === undefined ? unavailable('no witnesses are set') : invalidAnswer('no log')
    for (const { request } of placed) answer(request, failed(reason))
    return
  }
  const run: Run = { ...deps, logging, terms, appended, bootId, answer, limit: createLimit(logging.schedule, LIMIT_MS) }
  try {
    await signWithLog(run, placed)
  } finally {
    run.limit.end()
  }
}

/** One answer of an enclave. */
type Run = SignLoggedDeps & {
  logging: Logging
  terms: EnclaveTerms
  appended: AppendedEntries
  bootId: string
  answer: SignProgress['answer']
  limit: Limit
}

async function signWithLog(run: Run, placed: readonly Placing[]): Promise<void> {
  const { logged, missing } = findInLog(run.appended, placed)
  const failures = toFailures(missing, invalidAnswer('the statement is not in the log'))
  const usable = logged.filter((item) => {
    try {
      // Before it is asked for: what the enclave has given away cannot be dropped, and readers of the log would look for it for ever.
      assertSignedAt(item.place.timeMs, item.expected)
      return true
    } catch (reason) {
      failures.push({ item, reason })
      return false
    }
  })
  await Promise.all([failures.length > 0 && giveUp(run, failures), usable.length > 0 && recordAndRelease(run, usable)])
}

async function recordAndRelease(run: Run, logged: readonly LoggedItem[]): Promise<void> {
  const { logging, terms, appended, bootId, limit } = run
  const { keeper, releases } = logging
  const verifying = new Map<SignedBatch, Promise<VerifiedBatch>>()
  let lost: ReadonlySet<string>
  try {
    const logKey = findLogKey(terms, appended.origin)
    if (logKey === undefined) {
      throw new CoordinatorError('attestation_invalid', 'the enclave’s log is not one of its settings')
    }
    for (const [batch, items] of Map.groupBy(logged, ({ batch }) => batch)) {
      const verified = run.verifyBatch(batch, terms, { at: toTimes(items), isReleased: true, logKey })
      // Who waits for it is told; if the log cannot be written, nobody does.
      verified.catch(() => {})
      verifying.set(batch, verified)
    }
    const claims = logged.flatMap(toClaim)
    lost = (await limit.hold(keeper.record(appended, { bootId, terms, claims }))).lost
  } catch (error) {
    return giveUp(run, toFailures(logged, error))
  }
  const losers = logged.filter(({ leaf }) => lost.has(leaf))
  if (losers.length > 0) releases.drop(bootId, losers.map(toLeaf))
  const groups = groupByNeed(logged.filter(({ leaf }) => !lost.has(leaf)))
  await Promise.all([
    ...losers.map(({ request }) => answerWinner(run, request)),
    ...groups.map(({ batch, need, items }) =>
      releaseGroup(run, { need, items, verified: verifying.get(batch) as Promise<VerifiedBatch> }),
    ),
  ])
}

type Released = LoggedItem & { checked: CheckedItem; log: { origin: string; note: string; index: number } }

/** What one quote covers and the same witnesses must have seen: all of it waits for one note, and is asked for in one call. */
async function releaseGroup(
  run: Run,
  { need, items, verified }: Omit<Group, 'batch'> & { verified: Promise<VerifiedBatch> },
): Promise<void> {
  const { logging, appended, bootId, limit } = run
  const { keeper, releases } = logging
  const { origin } = appended
  const size = Math.max(...items.map(({ place }) => place.index)) + 1
  const released: Released[] = []
  const failures: Failure[] = []
  try {
    const cosigned = keeper.cosign({ origin, size, ...(need && { needs: [need] }) })
    const [{ note }] = await limit.hold(Promise.all([cosigned, verified]))
    const bytes = items.reduce((sum, { request }) => sum + countBytes(request), 0)
    const { statements } = await releases.release({ bootId, ...toCosigned(note), leaves: items.map(toLeaf) }, bytes)
    for (const [index, item] of items.entries()) {
      try {
        const checked = assertReleased(item, statements[index])
        released.push({ ...item, checked, log: { origin, note, index: item.place.index } })
      } catch (reason) {
        failures.push({ item, reason })
      }
    }
  } catch (reason) {
    return giveUp(run, toFailures(items, reason))
  }
  await settle(run, verified, released, (item, result, isNew) => {
    if (result.status === 'rejected') {
      failures.push({ item, reason: result.reason })
      return
    }
    if (isNew) releases.acknowledge(bootId, item.leaf)
    run.answer(item.request, result)
  })
  if (failures.length > 0) await giveUp(run, failures)
}

function assertReleased(
  { place, leafIndex, expected, batch }: LoggedItem,
  stated: SignedStatement | null | undefined,
): CheckedItem {
  if (stated === null || stated === undefined) throw unavailable('the statement was erased')
  const checked = assertItemSigned(expected, { ...stated, leafIndex }, batch)
  // The quote was judged at the time in the log, which stays there.
  if (Date.parse(checked.stated.statement.signedAt) !== place.timeMs) throw invalidAnswer('the log says another time')
  return checked
}

type Failure = { item: Pick<LoggedItem, 'request' | 'leaf'>; reason: unknown }

const toFailures = (items: readonly Failure['item'][], reason: unknown): Failure[] =>
  items.map((item) => ({ item, reason }))

/** Nobody gets these: the enclave is told, the claims fall, and then their callers may try again. */
async function giveUp({ logging, bootId, answer, log }: Run, failures: readonly Failure[]): Promise<void> {
  logging.releases.drop(
    bootId,
    failures.map(({ item }) => item.leaf),
  )
  const limit = createLimit(logging.schedule, GIVE_UP_MS)
  try {
    await limit.hold(logging.keeper.giveUp(failures.flatMap(({ item }) => toClaim(item))))
  } catch (error) {
    // They fall by themselves when the enclave has erased the leaves.
    log.warn({ msg: 'Could not give up claims', bootId, ...toReason(error) })
  } finally {
    limit.end()
  }
  for (const { item, reason } of failures) answer(item.request, failed(reason))
}

/** Somebody else was first with this digest: theirs is the answer, once it is stored. */
async function answerWinner({ logging, answer }: Run, request: SigningRequest): Promise<void> {
  const { findSigned, schedule } = logging
  const limit = createLimit(schedule, PATIENCE_MS)
  try {
    for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += POLL_MS) {
      const value = await limit.hold(findSigned(request))
      if (value !== undefined) return answer(request, { status: 'fulfilled', value })
      await new Promise<void>((resolve) => schedule(resolve, POLL_MS))
    }
    throw unavailable('the same was asked elsewhere, and is not signed yet')
  } catch (error) {
    answer(request, failed(error))
  } finally {
    limit.end()
  }
}

/** No two signatures off the chain are the same. */
function toClaim({ request: { walletId, asked }, leaf }: Failure['item']): Claim[] {
  const isOffChain = asked.kind === 'message' || asked.kind === 'typed-data'
  return isOffChain ? [] : [{ walletId, digest: asked.digest, leaf }]
}

type Group = { batch: SignedBatch; need: WitnessPolicy | undefined; items: readonly LoggedItem[] }

/** By batch, and by the witnesses that a vault's rules ask for: one whose witnesses do not answer holds nobody else up. */
function groupByNeed(items: readonly LoggedItem[]): Group[] {
  const needOf = ({ request: { vault } }: LoggedItem) => vault?.rules.log ?? undefined
  return [...Map.groupBy(items, ({ batch }) => batch)].flatMap(([batch, ofBatch]) =>
    [...Map.groupBy(ofBatch, (item) => JSON.stringify(needOf(item)))].map(([, group]) => ({
      batch,
      need: group[0] && needOf(group[0]),
      items: group,
    })),
  )
}

const toLeaf = ({ leaf }: { leaf: string }) => leaf

type Limit = { hold<Result>(work: Promise<Result>): Promise<Result>; end(): void }

/** Work that takes longer is left behind, and whatever it gives later is dropped. */
function createLimit(schedule: Schedule, limitMs: number): Limit {
  let end = () => {}
  const over = new Promise<never>((_resolve, reject) => {
    end = schedule(() => reject(unavailable('it took too long')), limitMs)
  })
  // There may be nobody who waits.
  over.catch(() => {})
  return { hold: (work) => Promise.race([work, over]), end }
}

function unavailable(details: string) {
  return new CoordinatorError('log_unavailable', 'the log is not available', { details })
}
