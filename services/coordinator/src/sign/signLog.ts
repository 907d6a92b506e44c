import type { WitnessPolicy } from '@countersign/log'
import {
  type AppendedEntries,
  isOffChain,
  type OpenBatch,
  type ReleaseRequest,
  type ReleaseResponse,
  type SignedBatch,
  type SignedStatement,
} from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError, invalidAnswer } from '../errors.ts'
import { createGatherer, type Progress } from '../store/gather.ts'
import type { Claim, CosignedNote } from '../store/logs.ts'
import type { Store } from '../store/openStore.ts'
import type { Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import type { EnclaveTerms, KeyEnclave } from './enclave/keyEnclave.ts'
import { findLogKey, toCosigned } from './enclave/logCalls.ts'
import { countBytes, type SignJob, type SignProgress } from './job.ts'

type LeafJob = SignJob<'leaf'>
type TimedJob = SignJob<'leaf' | 'time' | 'log'>

export type Failure = { job: LeafJob; reason: unknown }

export type CosignParameters = {
  size: number
  needs?: readonly WitnessPolicy[] | undefined
  maxAgeMs?: number | undefined
}

/** Writes the logs of enclaves and collects cosignatures for them. */
export type LogRecorder = {
  /**
   * Writes the entries that an enclave appended, with claims on the digests that it signed. Callers do this first, because entries are
   * never removed. Returns the leaves whose (wallet, digest) another request has claimed or signed; drop these. Throws `log_unavailable`.
   */
  record(
    appended: AppendedEntries,
    context: { bootId: string; terms: EnclaveTerms; claims: readonly Claim[] },
  ): Promise<{ lost: ReadonlySet<string> }>
  /**
   * Returns a note that covers `size` entries. It has the log's signature and cosignatures of a quorum of the settings' witnesses, in the
   * order of the settings. It also satisfies the witness policies in `needs`, and its cosignatures are at most `maxAgeMs` old. Throws
   * `log_unavailable` when it takes too long.
   */
  cosign(parameters: { origin: string } & CosignParameters): Promise<CosignedNote>
  /** The boot that has this log open. Undefined while there is none. */
  findBoot(origin: string): string | undefined
  /** Releases the claims of dropped statements. */
  releaseClaims(claims: readonly Claim[]): Promise<void>
}

export type SignLog = ReturnType<typeof createSignLog>
export type LogStep = ReturnType<SignLog['begin']>
type LogPlace = { index: number; timeMs: number }

/** The longest time from the enclave's answer until the coordinator asks for the statement. The enclave erases statements after 30 s. */
const LIMIT_MS = 10_000
const GIVE_UP_MS = 1_000
/** How long a call may keep its slot after the enclave's answer. A log, quote or enclave that hangs must not block the other enclaves. */
const SLOT_MS = 2_000
/** How often and how long to poll for the signature if another request was first. */
const POLL_MS = 50
const PATIENCE_MS = 3_000

/** Of the witnesses' time for budgets. The enclave accepts 60 s. */
const MAX_TIME_AGE_MS = 30_000

const ACKNOWLEDGE_MS = 500
/** By then the enclave has logged the statement as unacknowledged. */
const FORGET_MS = 60_000
const MAX_ACKNOWLEDGED = 1_024
/** Requests in one call. */
const MAX_TOGETHER = 512
/** Bytes of statements in one answer, far below the read limit. A single request may exceed it, but the sign call bounds its size. */
const MAX_TOGETHER_BYTES = 2_000_000

/** The steps of signing that an enclave with a log needs. */
export function createSignLog(deps: {
  logService: LogRecorder
  enclave: Pick<KeyEnclave, 'release' | 'avoid'>
  store: Pick<Store, 'findSigned'>
  schedule: Schedule
  log: Pick<Log, 'warn'>
}) {
  const { logService, enclave, store, schedule, log } = deps
  const releases = createReleases(deps)

  async function releaseClaims(bootId: string, jobs: readonly LeafJob[]): Promise<void> {
    const limit = createLimit(schedule, GIVE_UP_MS)
    try {
      await limit.hold(logService.releaseClaims(jobs.flatMap(toClaim)))
    } catch (error) {
      // Claims expire after the enclave has erased the leaves.
      log.warn({ msg: 'Could not release claims', bootId, ...toReason(error) })
    } finally {
      limit.end()
    }
  }

  /** The log's steps for one answer of an enclave. */
  function begin(
    { appended, bootId }: { appended: AppendedEntries; bootId: string },
    { answer, onSent }: SignProgress,
  ) {
    const { origin } = appended
    const places = readPlaces(appended)
    const limit = createLimit(schedule, LIMIT_MS)
    const cancelSlot = schedule(onSent, SLOT_MS)
    return {
      /** Finds the job's log entry. Throws `attestation_invalid` without one, because no inclusion proof would be possible. */
      findEntry({ keyId, leaf }: LeafJob): LogPlace {
        const place = places.get(keyId + leaf.hash)
        if (place === undefined) throw invalidAnswer('the statement is not in the log')
        return place
      },
      /** The verifier key of the log that has the entries. */
      getLogKey(terms: EnclaveTerms): string {
        const key = findLogKey(terms, origin)
        if (key !== undefined) return key
        throw new CoordinatorError('attestation_invalid', 'the enclave’s log is not one of its settings')
      },
      /** Writes entries and claims. `lost` are the jobs whose digest another request signs; the enclave is asked to drop them. */
      async record<Job extends TimedJob>(jobs: readonly Job[], terms: EnclaveTerms) {
        const claims = jobs.flatMap(toClaim)
        const { lost } = await limit.hold(logService.record(appended, { bootId, terms, claims }))
        const isLost = ({ leaf }: LeafJob) => lost.has(leaf.hash)
        const losers = jobs.filter(isLost)
        releases.drop(bootId, losers.map(toLeafHash))
        return { owned: jobs.filter((job) => !isLost(job)), lost: losers }
      },
      /**
       * Has the entries cosigned, then asks for the statements and the quote, which may still be under way. A statement is null if the
       * enclave has erased it.
       */
      async release(
        jobs: readonly TimedJob[],
        { batch, need }: { batch: OpenBatch; need: WitnessPolicy | undefined },
      ): Promise<{ statements: readonly (SignedStatement | null)[]; batch: SignedBatch }> {
        const size = Math.max(...jobs.map(({ time }) => time.entryIndex ?? 0)) + 1
        const { note } = await limit.hold(logService.cosign({ origin, size, ...(need && { needs: [need] }) }))
        for (const job of jobs) job.log = { origin, note, index: job.time.entryIndex ?? 0 }
        const bytes = jobs.reduce((sum, job) => sum + countBytes(job), 0)
        const request = { bootId, ...toCosigned(note), leaves: jobs.map(toLeafHash) }
        const { statements, quotes } = await releases
          .release(request, { bytes, sequence: batch.sequence })
          .catch((cause: unknown) => {
            throw new NotReleased('the enclave did not release', cause)
          })
        const quote = quotes.find(({ sequence }) => sequence === batch.sequence)
        if (quote !== undefined) return { statements, batch: { ...batch, ...quote } }
        if (statements.some((statement) => statement !== null)) throw invalidAnswer('the quote is missing')
        // Its quote failed.
        enclave.avoid(bootId)
        throw new NotReleased('the statements were erased')
      },
      /** Reports to the enclave that the job is stored. */
      acknowledge: (job: LeafJob) => releases.acknowledge(bootId, toLeafHash(job)),
      /** Asks the enclave to drop these statements, so that no one gets them, and releases their claims. */
      async drop(jobs: readonly LeafJob[]) {
        releases.drop(bootId, jobs.map(toLeafHash))
        await releaseClaims(bootId, jobs)
      },
      /** If another request was first with this digest: answers with that request's signature once it is stored. */
      async answerWinner(job: LeafJob) {
        const [winner] = await Promise.allSettled([findWinner(job)])
        answer(job, winner)
      },
      /** Cancels the timers. */
      end() {
        limit.end()
        cancelSlot()
      },
    }
  }

  async function findWinner({ walletId, content: { digest } }: SignJob) {
    const limit = createLimit(schedule, PATIENCE_MS)
    try {
      for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += POLL_MS) {
        const [signed] = await limit.hold(store.findSigned([{ walletId, digest }]))
        if (signed !== undefined) return { signature: signed.signature, slug: signed.slug }
        await new Promise<void>((resolve) => schedule(resolve, POLL_MS))
      }
      throw logUnavailable('another request is signing the same digest')
    } finally {
      limit.end()
    }
  }

  return {
    begin,
    findBoot: logService.findBoot,
    /** Shows the boot recent cosignatures of these witnesses, from which it takes the time for budgets. */
    async renewTime({ bootId, origin, need }: { bootId: string; origin: string; need: WitnessPolicy }) {
      const { note } = await logService.cosign({ origin, size: 0, needs: [need], maxAgeMs: MAX_TIME_AGE_MS })
      await enclave.release({ bootId, ...toCosigned(note) })
    },
    stop: releases.stop,
  }
}

/** For an entry in hex (`spec/log-v1.md`): the kind byte of a signature, and the offset of the time, where key id and leaf end. */
const SIGNATURE = '01'
const TIME_AT = 98

/** By key id and leaf. Skips malformed entries: the log's writer rejects the whole answer because of them. */
function readPlaces({ from, entries }: AppendedEntries): Map<string, LogPlace> {
  const places = new Map<string, LogPlace>()
  for (const [offset, entry] of entries.entries()) {
    if (!entry.startsWith(SIGNATURE)) continue
    const timeMs = Number.parseInt(entry.slice(TIME_AT), 16)
    places.set(entry.slice(SIGNATURE.length, TIME_AT), { index: from + offset, timeMs })
  }
  return places
}

function toClaim({ walletId, content, leaf }: LeafJob): Claim[] {
  return isOffChain(content) ? [] : [{ walletId, digest: content.digest, leaf: leaf.hash }]
}

const toLeafHash = ({ leaf }: LeafJob) => leaf.hash

/** Stops waiting for work that takes longer, and ignores its result. */
function createLimit(schedule: Schedule, limitMs: number) {
  const over = Promise.withResolvers<never>()
  // Prevents an unhandled rejection if no caller is waiting.
  over.promise.catch(() => {})
  const end = schedule(() => over.reject(logUnavailable('it took too long')), limitMs)
  return { hold: <Result>(work: Promise<Result>) => Promise.race([work, over.promise]), end }
}

/** As far as this coordinator knows, the enclave released nothing, so another one may sign instead. */
export class NotReleased extends CoordinatorError {
  constructor(details: string, cause?: unknown) {
    super('log_unavailable', 'the log is not available', { details, cause })
  }
}

export function logUnavailable(details: string): CoordinatorError {
  return new CoordinatorError('log_unavailable', 'the log is not available', { details })
}

/** A call that waits for statements of one batch. */
type Call = { request: ReleaseRequest; bytes: number; sequence: number }

/** Leaves to acknowledge, with the times at which they were added. */
type Acknowledgements = { leaves: Map<string, number>; cancel: (() => void) | undefined }

/** Sends releases, drops and acknowledgements to the boots that signed for this coordinator. */
export function createReleases(deps: {
  enclave: Pick<KeyEnclave, 'release'>
  schedule: Schedule
  log: Pick<Log, 'warn'>
}) {
  const { enclave, schedule, log } = deps
  const boots = new Map<string, Acknowledgements>()
  const pending = new Set<Promise<void>>()
  let isStopped = false

  const gatherer = createGatherer<Call, ReleaseResponse>({
    limit: MAX_TOGETHER,
    weight: { of: ({ bytes }) => bytes, limit: MAX_TOGETHER_BYTES },
    slots: 1,
    async run(calls, { onSent, answer }) {
      // The next batch doesn't wait for this answer.
      onSent()
      // By batch too, so that no call waits for another batch's quote.
      const toKey = ({ request: { leaves: _, ...note }, sequence }: Call) => JSON.stringify({ ...note, sequence })
      const groups = Map.groupBy(calls, toKey)
      await Promise.all([...groups.values()].map((group) => releaseTogether(group, answer)))
    },
  })

  async function releaseTogether(calls: readonly Call[], answer: Progress<Call, ReleaseResponse>['answer']) {
    const leaves = calls.flatMap(({ request }) => request.leaves ?? [])
    const [released] = await Promise.allSettled([send({ ...(calls[0] as Call).request, leaves })])
    let start = 0
    for (const call of calls) {
      const end = start + (call.request.leaves ?? []).length
      if (released.status === 'rejected') answer(call, released)
      else {
        const statements = released.value.statements.slice(start, end)
        answer(call, { ...released, value: { ...released.value, statements } })
      }
      start = end
    }
  }

  async function send(request: ReleaseRequest): Promise<ReleaseResponse> {
    const { bootId } = request
    const taken = takeAcknowledgements(bootId)
    try {
      return await enclave.release({
        ...request,
        ...(taken.length > 0 && { acknowledge: taken.map(([leaf]) => leaf) }),
      })
    } catch (error) {
      putBack(bootId, taken)
      throw error
    }
  }

  function takeAcknowledgements(bootId: string): [string, number][] {
    const waiting = boots.get(bootId)
    if (waiting === undefined) return []
    const taken = [...waiting.leaves].slice(0, MAX_ACKNOWLEDGED)
    for (const [leaf] of taken) waiting.leaves.delete(leaf)
    if (waiting.leaves.size === 0) {
      waiting.cancel?.()
      boots.delete(bootId)
    }
    return taken
  }

  function putBack(bootId: string, taken: readonly (readonly [string, number])[]) {
    for (const [leaf, since] of taken) if (performance.now() - since < FORGET_MS) add(bootId, leaf, since)
  }

  function add(bootId: string, leaf: string, since: number) {
    const waiting = boots.get(bootId) ?? { leaves: new Map(), cancel: undefined }
    boots.set(bootId, waiting)
    waiting.leaves.set(leaf, since)
    if (isStopped) return
    waiting.cancel ??= schedule(() => {
      waiting.cancel = undefined
      sendAcknowledgements(bootId)
    }, ACKNOWLEDGE_MS)
  }

  function sendInBackground(request: ReleaseRequest) {
    const sent = send(request).then(
      () => {},
      (error: unknown) => log.warn({ msg: 'Could not notify an enclave', bootId: request.bootId, ...toReason(error) }),
    )
    pending.add(sent)
    void sent.then(() => pending.delete(sent))
  }

  /** Ends because each call removes the leaves that it sends. */
  function sendAcknowledgements(bootId: string) {
    while (boots.has(bootId)) sendInBackground({ bootId })
  }

  return {
    /**
     * Asks for statements of one batch, of about `bytes` bytes. Requests with the same note and batch share a call, which also carries the
     * boot's pending acknowledgements.
     */
    release: (request: ReleaseRequest, of: { bytes: number; sequence: number }) => gatherer.add({ request, ...of }),
    /** Drops statements that no caller waits for. Sent once, in the background: if it fails, the enclave erases them after a while. */
    drop(bootId: string, leaves: readonly string[]) {
      if (leaves.length > 0) sendInBackground({ bootId, drop: leaves })
    },
    /** Reports that a signing is stored, with the next release or in a separate call within a second. */
    acknowledge: (bootId: string, leaf: string) => add(bootId, leaf, performance.now()),
    /** Sends the pending acknowledgements and waits for all calls. */
    async stop() {
      isStopped = true
      for (const bootId of [...boots.keys()]) sendAcknowledgements(bootId)
      while (pending.size > 0) await Promise.all(pending)
    },
  }
}
