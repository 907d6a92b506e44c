import { isSatisfied, type NoteKey, type WitnessPolicy } from '@countersign/log'
import { SAMPLE_TOLERANCE_MS, toHex } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { CosignParameters } from '../sign/signLog.ts'
import type { CosignedNote, LogStore } from '../store/logs.ts'
import type { Clock, Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import { LogFault } from './appended.ts'
import { type Collection, createCollection, isDatedAhead, isRefusedBy, toCosignedNote } from './collection.ts'
import { createNoteSaver } from './noteSaver.ts'
import type { RecentTree } from './recentTree.ts'
import { proveConsistency } from './recentTree.ts'
import type { WitnessAnswer, WitnessClient } from './witnessClient.ts'
import type { WitnessCount } from './witnessStatus.ts'
import { createWitnessStatus } from './witnessStatus.ts'

export type RoundOutcome = 'cosigned' | 'refused' | 'unavailable'

export type CosignerDeps = {
  store: Pick<LogStore, 'exclusively' | 'findLogHead' | 'insertNote' | 'readTiles'>
  /** The log's key. */
  key: NoteKey
  /** The log's id in the store. */
  hash: string
  /** By key in hex. */
  clients: ReadonlyMap<string, WitnessClient>
  /** The policy in the enclave's current settings. */
  getPolicy(): WitnessPolicy
  /** The cached tree of a stored checkpoint. */
  getRecent(size: number): RecentTree | undefined
  /** The newest stored checkpoint, if this coordinator stored it. */
  getWritten(): { size: number; note: string } | undefined
  clock: Clock
  schedule: Schedule
  log: Log
  onRound(outcome: RoundOutcome, seconds: number): void
  onAnswer(witness: string, outcome: WitnessAnswer['outcome']): void
  onCosigned(size: number): void
  /** Called when too many witnesses refuse this log. */
  onRefused(): void
}

/** Collects cosignatures for the checkpoints of one log. */
export type Cosigner = {
  /** Throws `log_unavailable` if it takes too long or the witnesses refuse. */
  cosign(parameters: CosignParameters): Promise<CosignedNote>
  /** Why too many witnesses refuse the newest checkpoint. Undefined if enough don't. */
  readonly refusal: string | undefined
  /** Asks again the witnesses without a recent cosignature, and from time to time all, so that the public checkpoint stays recent. */
  refresh(): void
  /** Clears the state for a new start of the log, because the database may have been restored. */
  reset(): void
  /** Names of the witnesses without a recent cosignature. */
  findMissing(): string[]
  hasQuorum(): boolean
  countWitnesses(): WitnessCount
  /** Rejects pending calls with this reason. */
  stop(reason?: Error): Promise<void>
}

/** State of the rounds. At most one round runs at a time. */
type State =
  | { kind: 'idle' }
  /** `again`: a caller arrived or a witness changed during the round, maybe too late for it. Another round follows immediately. */
  | { kind: 'asking'; again: boolean; over: Promise<void> }
  /** The last round didn't serve all callers. Waits before the next one. */
  | { kind: 'pausing'; cancel(): void }
  | { kind: 'stopped'; reason: Error }

type Wanted = Omit<CosignParameters, 'maxAgeMs'> & { since: number }
type Waiter = Wanted & { resolve(note: CosignedNote): void; reject(error: Error): void }

/** Proves that the checkpoint's tree continues the tree of `oldSize`. */
type Prove = (oldSize: number) => Promise<readonly Uint8Array[]>

const WAIT_MS = 10_000
/** Pause before witnesses are asked again while callers are waiting. */
const RETRY_MS = 250
const RETRY_MISSING_MS = 5_000
const REFRESH_MS = 60_000
/** A witness counts as available for this time after it cosigned. */
const AVAILABLE_MS = 3 * REFRESH_MS

/**
 * Asks witnesses in rounds: all at the same time, for the newest stored checkpoint, and by one coordinator at a time. A round ends when a
 * quorum has cosigned. Later cosignatures count too, but no round waits for them.
 */
export function createCosigner(deps: CosignerDeps): Cosigner {
  const { store, key, hash, clients, getPolicy, clock, schedule, log } = deps
  const origin = key.name
  const notes = createNoteSaver({ store, hash, origin, clock, schedule, log })
  const witnessStatus = createWitnessStatus({ origin, clients, getPolicy, clock, log, availableMs: AVAILABLE_MS })
  const waiters = new Set<Waiter>()
  /** Witnesses with a pending request. */
  const busy = new Set<string>()
  let latest: Collection | undefined
  let state: State = { kind: 'idle' }
  let roundAt = Number.NEGATIVE_INFINITY
  /** Whether a quorum has cosigned this log before. If so, a witness that doesn't know the log is mistaken. */
  let isKnown = false
  let sharedUntil = Number.NEGATIVE_INFINITY

  function collect(note: string): Collection | undefined {
    return createCollection(note, { key, witnesses: getPolicy().witnesses, now: clock.now() })
  }

  function isEnough(
    collection: Collection | undefined,
    { size, needs = [], since = 0 }: Partial<Wanted> & { size: number },
  ): collection is Collection {
    return (
      collection !== undefined &&
      collection.size >= size &&
      collection.startedAt >= since &&
      [getPolicy(), ...needs].every((policy) => isSatisfied(policy, collection.cosignatures.keys()))
    )
  }

  function serve(collection: Collection) {
    const served = [...waiters].filter((waiter) => isEnough(collection, waiter))
    if (served.length === 0) return
    const note = toCosignedNote(collection, getPolicy())
    for (const waiter of served) waiter.resolve(note)
  }

  /** Runs one round. Callers that wait for a larger tree than the one stored at its start need another round. */
  async function runRound(): Promise<void> {
    const startedAt = performance.now()
    roundAt = clock.now()
    // The only coordinator that writes to a log needs no lock. If others write to it, a witness reports a larger size.
    const runExclusively = findOwn() === undefined ? store.exclusively : runWithoutLock
    await runExclusively(hash, async () => {
      const written = findOwn() ?? (await readHead())
      if (written === undefined) return
      const wantedSince = Math.max(clock.now() - REFRESH_MS + 1, ...[...waiters].map(({ since }) => since))
      const isFresh = latest !== undefined && latest.startedAt >= wantedSince
      const isWanted = [...waiters].some((waiter) => !isEnough(latest, waiter))
      if (!isWanted && isFresh && witnessStatus.findMissing().length === 0) return
      const current = isFresh && latest?.note === written.note ? latest : collect(written.note)
      if (current === undefined) throw new LogFault('log_malformed', 'a checkpoint in the database is not signed')
      latest = current
      await askAll(current, written.likelySize)
      const outcome = concludeRound(current)
      deps.onRound(outcome, (performance.now() - startedAt) / 1000)
      if (outcome !== 'cosigned') return
      isKnown = true
      deps.onCosigned(current.size)
      const read = () => toCosignedNote(current, getPolicy())
      // Stored immediately, so that other coordinators find it.
      if (isShared()) return notes.save(read())
      notes.saveLater(read)
    })
  }

  /** A coordinator that writes to the log without others knows its newest checkpoint. */
  function findOwn(): { note: string; likelySize: number } | undefined {
    const own = deps.getWritten()
    if (own === undefined || latest === undefined || own.size < latest.size || isShared()) return undefined
    return [...waiters].every(({ size }) => size <= own.size) ? { note: own.note, likelySize: latest.size } : undefined
  }

  async function readHead(): Promise<{ note: string; likelySize: number } | undefined> {
    const head = await store.findLogHead(hash)
    if (head === undefined) return undefined
    const { written, cosigned } = head
    // Cosigned checkpoints are stored first. If one is missing, the database was restored from a backup.
    if (latest !== undefined && latest.size > written.size) latest = undefined
    isKnown ||= cosigned !== undefined
    adopt(cosigned)
    return { note: written.note, likelySize: cosigned?.size ?? 0 }
  }

  /** Whether other coordinators have used this log recently. */
  function isShared(): boolean {
    return clock.now() < sharedUntil
  }

  /** Adopts a stored note, which another coordinator may have stored, or this one before a restart. */
  function adopt(cosigned: CosignedNote | undefined) {
    if (cosigned === undefined || cosigned.size <= (latest?.size ?? 0)) return
    const collection = collect(cosigned.note)
    if (!isEnough(collection, { size: cosigned.size })) return
    for (const { witness, timestampS } of collection.cosignatures.values()) {
      // The witness's clock sets this time, so it is limited to the current time.
      const at = Math.min(clock.now(), timestampS * 1000)
      collection.startedAt = Math.min(collection.startedAt, at)
      witnessStatus.setCosigned(witness, at)
    }
    latest = collection
    sharedUntil = clock.now() + REFRESH_MS
    notes.setSaved(collection.size, collection.startedAt)
    deps.onCosigned(collection.size)
    serve(collection)
  }

  /** Resolves when there is a quorum, or when all witnesses have answered. */
  function askAll(collection: Collection, likelySize: number): Promise<void> {
    const idle = getPolicy().witnesses.flatMap((witness) => {
      const client = clients.get(witness)
      return client === undefined || busy.has(witness) || collection.cosignatures.has(witness) ? [] : [client]
    })
    return new Promise((resolve) => {
      let open = idle.length
      const resolveIfDone = () => {
        if (open === 0 || isSatisfied(getPolicy(), collection.cosignatures.keys())) resolve()
      }
      const prove = createProver(collection.size)
      for (const client of idle) {
        const witness = toHex(client.key.publicKey)
        busy.add(witness)
        void ask(client, { collection, likelySize, prove }).then(() => {
          busy.delete(witness)
          open -= 1
          resolveIfDone()
          serve(collection)
          // A newer collection may need this witness.
          if (collection !== latest && waiters.size > 0) startRound()
        })
      }
      resolveIfDone()
    })
  }

  /** Caches proofs by size, because most witnesses have seen the same size. */
  function createProver(size: number): Prove {
    const proofs = new Map<number, ReturnType<Prove>>()
    return (oldSize) => {
      const proof =
        proofs.get(oldSize) ?? proveConsistency({ store, hash, recent: deps.getRecent(size) }, { oldSize, size })
      proofs.set(oldSize, proof)
      return proof
    }
  }

  async function ask(
    client: WitnessClient,
    { collection, likelySize, prove }: { collection: Collection; likelySize: number; prove: Prove },
  ): Promise<void> {
    const { size, text, note } = collection
    const answer = await client.addCheckpoint({ origin, size, text, note, likelySize, prove })
    const checked = answer.outcome === 'ahead' ? await checkAhead(answer.size) : checkTime(answer)
    record(client, checked, collection)
  }

  function checkTime(answer: WitnessAnswer): WitnessAnswer {
    if (answer.outcome !== 'cosigned' || !isDatedAhead(answer.cosignature, clock.now())) return answer
    return { outcome: 'unavailable', reason: `its clock is more than ${SAMPLE_TOLERANCE_MS / 1000} s ahead of ours` }
  }

  /** A witness with a larger size has seen a newer checkpoint of this log, or one that the database has lost. */
  async function checkAhead(size: number): Promise<WitnessAnswer> {
    const head = await store.findLogHead(hash).catch(() => undefined)
    if (head === undefined) return { outcome: 'unavailable', reason: 'the database is unreachable' }
    if (head.written.size >= size) return { outcome: 'ahead', size }
    return { outcome: 'contradicts', reason: `it has seen ${size} entries, and the database has ${head.written.size}` }
  }

  function record({ key: { name, publicKey } }: WitnessClient, answer: WitnessAnswer, collection: Collection) {
    const { outcome } = answer
    const witness = toHex(publicKey)
    deps.onAnswer(name, outcome)
    if (outcome === 'cosigned') collection.cosignatures.set(witness, answer.cosignature)
    // A proxy may briefly return 404 or 403. Don't abandon a log that a quorum has cosigned.
    const isRejected = outcome === 'unknown_log' || outcome === 'forbidden'
    if (outcome === 'contradicts' || (isRejected && !isKnown)) {
      collection.refusals.set(witness, `${name}: ${answer.reason}`)
    } else {
      collection.refusals.delete(witness)
    }
    if (outcome === 'ahead') {
      // The witness has seen a newer checkpoint of this log, so another round can ask with that one.
      if (state.kind === 'asking') state.again = true
      sharedUntil = clock.now() + REFRESH_MS
      return
    }
    witnessStatus.set(witness, answer)
  }

  function concludeRound(collection: Collection): RoundOutcome {
    if (isSatisfied(getPolicy(), collection.cosignatures.keys())) return 'cosigned'
    if (!isRefusedBy(collection, getPolicy())) return 'unavailable'
    for (const waiter of waiters) if (waiter.size <= collection.size) waiter.reject(unavailable('the witnesses refuse'))
    deps.onRefused()
    return 'refused'
  }

  /** Starts a round, or another one after the current round. */
  function startRound() {
    if (state.kind === 'stopped') return
    if (state.kind === 'asking') {
      state.again = true
      return
    }
    if (state.kind === 'pausing') state.cancel()
    const asking = { kind: 'asking' as const, again: false, over: Promise.resolve() }
    state = asking
    asking.over = runRound()
      .catch((error: unknown) => log.warn({ msg: 'Could not ask the witnesses', origin, ...toReason(error) }))
      .finally(endRound)
  }

  /** Ends a round. While callers wait, starts another one, or pauses first. */
  function endRound() {
    if (state.kind !== 'asking') return
    const { again } = state
    state = { kind: 'idle' }
    if (![...waiters].some((waiter) => !isEnough(latest, waiter))) return
    if (again) startRound()
    else state = { kind: 'pausing', cancel: schedule(startRound, RETRY_MS) }
  }

  return {
    cosign({ maxAgeMs = Number.POSITIVE_INFINITY, ...parameters }) {
      if (state.kind === 'stopped') return Promise.reject(state.reason)
      const wanted = { ...parameters, since: Math.max(0, clock.now() - maxAgeMs) }
      if (isEnough(latest, wanted)) return Promise.resolve(toCosignedNote(latest, getPolicy()))
      return new Promise((resolve, reject) => {
        const end = (run: () => void) => {
          cancel()
          waiters.delete(waiter)
          run()
        }
        const waiter: Waiter = {
          ...wanted,
          resolve: (note) => end(() => resolve(note)),
          reject: (error) => end(() => reject(error)),
        }
        const cancel = schedule(() => waiter.reject(unavailable('the witnesses do not answer')), WAIT_MS)
        waiters.add(waiter)
        startRound()
      })
    },
    get refusal() {
      return latest !== undefined && isRefusedBy(latest, getPolicy())
        ? [...latest.refusals.values()].join('; ')
        : undefined
    },
    refresh() {
      if (state.kind === 'asking' || clock.now() - roundAt < RETRY_MISSING_MS) return
      const isOld = latest === undefined || clock.now() - latest.startedAt >= REFRESH_MS
      if (isOld || witnessStatus.findMissing().length > 0) startRound()
    },
    reset() {
      latest = undefined
      notes.reset()
    },
    findMissing: witnessStatus.findMissing,
    hasQuorum: witnessStatus.hasQuorum,
    countWitnesses: witnessStatus.count,
    async stop(reason = stopping()) {
      const before = state
      state = { kind: 'stopped', reason }
      if (before.kind === 'pausing') before.cancel()
      for (const waiter of waiters) waiter.reject(reason)
      if (before.kind === 'asking') await before.over
      await notes.stop()
    },
  }
}

function unavailable(details: string) {
  return new CoordinatorError('log_unavailable', 'the log could not be cosigned', { details })
}

function stopping() {
  return new CoordinatorError('shutting_down', 'the coordinator is stopping')
}

async function runWithoutLock(_hash: string, run: () => Promise<void>): Promise<void> {
  await run()
}
