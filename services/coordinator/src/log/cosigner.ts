import { isSatisfied, type NoteKey, type WitnessPolicy } from '@countersign/log'
import { SAMPLE_TOLERANCE_MS, toHex } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError } from '../errors.ts'
import type { CosignedNote, LogStore } from '../store/logs.ts'
import type { Clock, Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import { LogFault } from './appended.ts'
import { type Collection, createCollection, isDatedAhead, isRefusedBy, toCosignedNote } from './collection.ts'
import { createNoteKeeper } from './noteKeeper.ts'
import type { RecentTree } from './recentTree.ts'
import { proveConsistency } from './recentTree.ts'
import type { WitnessCount } from './standings.ts'
import { createStandings } from './standings.ts'
import type { WitnessAnswer, WitnessClient } from './witnessClient.ts'

export type RoundOutcome = 'cosigned' | 'refused' | 'unavailable'

export type CosignerDeps = {
  store: Pick<LogStore, 'exclusively' | 'findLogHead' | 'insertNote' | 'readTiles'>
  /** Of the log. */
  key: NoteKey
  /** The log's name in the store. */
  hash: string
  /** By their keys in hex. */
  clients: ReadonlyMap<string, WitnessClient>
  /** Of the enclave's settings as they are now. */
  getPolicy(): WitnessPolicy
  /** What is at hand of the tree of a checkpoint that is written. */
  getRecent(size: number): RecentTree | undefined
  /** The newest checkpoint that is written, if this coordinator wrote it. */
  getWritten(): { size: number; note: string } | undefined
  clock: Clock
  schedule: Schedule
  log: Log
  onRound(outcome: RoundOutcome, seconds: number): void
  onAnswer(witness: string, outcome: WitnessAnswer['outcome']): void
  onCosigned(size: number): void
  /** Too many witnesses refuse this log. */
  onRefused(): void
}

type CosignParameters = { size: number; needs?: readonly WitnessPolicy[] | undefined }

/** Has the checkpoints of one log cosigned. */
export type Cosigner = {
  /** Throws `log_unavailable` when it takes too long, or when the witnesses refuse. */
  cosign(parameters: CosignParameters): Promise<CosignedNote>
  /** Why so many witnesses refused the newest checkpoint that no quorum is left; undefined where it is not so. */
  readonly refusal: string | undefined
  /** Asks the witnesses that did not answer well, and now and then all: the public checkpoint is to have a time of today. */
  refresh(): void
  /** Forgets what was cosigned, for a new start of the log: the database may have been brought back. */
  reset(): void
  /** Names of the witnesses without a good answer lately. */
  findMissing(): string[]
  hasQuorum(): boolean
  countWitnesses(): WitnessCount
  /** Pending calls fail with this reason. */
  stop(reason?: Error): Promise<void>
}

/** Of the rounds: they follow each other. */
type State =
  | { kind: 'idle' }
  /** `again`: a caller or a witness came while the round was under way, perhaps too late for it. Another round follows at once. */
  | { kind: 'asking'; again: boolean; over: Promise<void> }
  /** The last round did not help everyone who waits. Witnesses are given time before the next one. */
  | { kind: 'pausing'; cancel(): void }
  | { kind: 'stopped'; reason: Error }

type Waiter = CosignParameters & { resolve(note: CosignedNote): void; reject(error: Error): void }

/** That the tree of a checkpoint continues the one of this size. */
type Prove = (oldSize: number) => Promise<readonly Uint8Array[]>

const WAIT_MS = 10_000
/** Before witnesses are asked again that did not help those who wait. */
const RETRY_MS = 250
const RETRY_MISSING_MS = 5_000
const REFRESH_MS = 60_000
/** A witness that cosigned within this time is there. */
const LATELY_MS = 3 * REFRESH_MS

/**
 * Witnesses are asked in rounds: always with the newest checkpoint that is written, all of them at once, and by one coordinator at a time.
 * A round ends when a quorum has cosigned. Later cosignatures count too, but no round waits for them.
 */
export function createCosigner(deps: CosignerDeps): Cosigner {
  const { store, key, hash, clients, getPolicy, clock, schedule, log } = deps
  const origin = key.name
  const notes = createNoteKeeper({ store, hash, origin, clock, schedule, log })
  const standings = createStandings({ origin, clients, getPolicy, clock, log, latelyMs: LATELY_MS })
  const waiters = new Set<Waiter>()
  /** Witnesses that are being asked. */
  const busy = new Set<string>()
  let latest: Collection | undefined
  let state: State = { kind: 'idle' }
  let roundAt = Number.NEGATIVE_INFINITY
  /** Whether a quorum has cosigned this log before. Then witnesses know it, and one that denies it is mistaken. */
  let isKnown = false
  let sharedUntil = Number.NEGATIVE_INFINITY

  function collect(note: string): Collection | undefined {
    return createCollection(note, { key, witnesses: getPolicy().witnesses, now: clock.now() })
  }

  function isEnough(
    collection: Collection | undefined,
    { size, needs = [] }: CosignParameters,
  ): collection is Collection {
    return (
      collection !== undefined &&
      collection.size >= size &&
      [getPolicy(), ...needs].every((policy) => isSatisfied(policy, collection.cosignatures.keys()))
    )
  }

  function serve(collection: Collection) {
    const served = [...waiters].filter((waiter) => isEnough(collection, waiter))
    if (served.length === 0) return
    const note = toCosignedNote(collection, getPolicy())
    for (const waiter of served) waiter.resolve(note)
  }

  /** One round. Callers that wait for a larger tree than the one written when it begins need another round. */
  async function runRound(): Promise<void> {
    const startedAt = performance.now()
    roundAt = clock.now()
    // A coordinator alone at a log needs no lock. If others write to it, a witness that is ahead says so.
    const inTurn = findOwn() === undefined ? store.exclusively : runAlone
    await inTurn(hash, async () => {
      const written = findOwn() ?? (await readHead())
      if (written === undefined) return
      const isFresh = latest !== undefined && clock.now() - latest.startedAt < REFRESH_MS
      const isWanted = [...waiters].some((waiter) => !isEnough(latest, waiter))
      if (!isWanted && isFresh && standings.findMissing().length === 0) return
      const current = isFresh && latest?.note === written.note ? latest : collect(written.note)
      if (current === undefined) throw new LogFault('log_malformed', 'a checkpoint in the database is not signed')
      latest = current
      await askAll(current, written.likelySize)
      const outcome = judge(current)
      deps.onRound(outcome, (performance.now() - startedAt) / 1000)
      if (outcome !== 'cosigned') return
      isKnown = true
      deps.onCosigned(current.size)
      const read = () => toCosignedNote(current, getPolicy())
      // So that who comes next finds it.
      if (isShared()) return notes.keep(read())
      notes.keepLater(read)
    })
  }

  /** Alone at a log, a coordinator knows what is written: it wrote it. */
  function findOwn(): { note: string; likelySize: number } | undefined {
    const own = deps.getWritten()
    if (own === undefined || latest === undefined || own.size < latest.size || isShared()) return undefined
    return [...waiters].every(({ size }) => size <= own.size) ? { note: own.note, likelySize: latest.size } : undefined
  }

  async function readHead(): Promise<{ note: string; likelySize: number } | undefined> {
    const head = await store.findLogHead(hash)
    if (head === undefined) return undefined
    const { written, cosigned } = head
    // What is cosigned is written. Where it is not, the database was brought back.
    if (latest !== undefined && latest.size > written.size) latest = undefined
    isKnown ||= cosigned !== undefined
    adopt(cosigned)
    return { note: written.note, likelySize: cosigned?.size ?? 0 }
  }

  /** Whether others have asked for this log lately. */
  function isShared(): boolean {
    return clock.now() < sharedUntil
  }

  /** Another coordinator may have asked, or this one before its last start. */
  function adopt(cosigned: CosignedNote | undefined) {
    if (cosigned === undefined || cosigned.size <= (latest?.size ?? 0)) return
    const collection = collect(cosigned.note)
    if (!isEnough(collection, { size: cosigned.size })) return
    for (const { witness, timestampS } of collection.cosignatures.values()) {
      // By the witness's own clock, which cannot make it later than now.
      const at = Math.min(clock.now(), timestampS * 1000)
      collection.startedAt = Math.min(collection.startedAt, at)
      standings.setCosigned(witness, at)
    }
    latest = collection
    sharedUntil = clock.now() + REFRESH_MS
    notes.setKept(collection.size, collection.startedAt)
    deps.onCosigned(collection.size)
    serve(collection)
  }

  /** Resolves with a quorum, or when all have answered. */
  function askAll(collection: Collection, likelySize: number): Promise<void> {
    const asked = getPolicy().witnesses.flatMap((witness) => {
      const client = clients.get(witness)
      return client === undefined || busy.has(witness) || collection.cosignatures.has(witness) ? [] : [client]
    })
    return new Promise((resolve) => {
      let open = asked.length
      const settle = () => {
        if (open === 0 || isSatisfied(getPolicy(), collection.cosignatures.keys())) resolve()
      }
      const prove = createProver(collection.size)
      for (const client of asked) {
        const witness = toHex(client.key.publicKey)
        busy.add(witness)
        void ask(client, { collection, likelySize, prove }).then(() => {
          busy.delete(witness)
          open -= 1
          settle()
          serve(collection)
          // Others went on without it, and may need it by now.
          if (collection !== latest && waiters.size > 0) startRound()
        })
      }
      settle()
    })
  }

  /** Most witnesses have seen the same. */
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
    const judged = answer.outcome === 'ahead' ? await judgeAhead(answer.size) : judgeTime(answer)
    record(client, judged, collection)
  }

  function judgeTime(answer: WitnessAnswer): WitnessAnswer {
    if (answer.outcome !== 'cosigned' || !isDatedAhead(answer.cosignature, clock.now())) return answer
    return { outcome: 'unavailable', reason: `its clock is more than ${SAMPLE_TOLERANCE_MS / 1000} s ahead of ours` }
  }

  /** A witness that is ahead of what we asked with has seen a newer checkpoint of ours, or one that the database has lost. */
  async function judgeAhead(size: number): Promise<WitnessAnswer> {
    const head = await store.findLogHead(hash).catch(() => undefined)
    if (head === undefined) return { outcome: 'unavailable', reason: 'the database cannot be read' }
    if (head.written.size >= size) return { outcome: 'ahead', size }
    return { outcome: 'contradicts', reason: `it has seen ${size} entries, and the database has ${head.written.size}` }
  }

  function record({ key: { name, publicKey } }: WitnessClient, answer: WitnessAnswer, collection: Collection) {
    const { outcome } = answer
    const witness = toHex(publicKey)
    deps.onAnswer(name, outcome)
    if (outcome === 'cosigned') collection.cosignatures.set(witness, answer.cosignature)
    // A proxy may briefly return 404 or 403. Don't abandon a log that a quorum has cosigned.
    const isStrange = outcome === 'unknown_log' || outcome === 'forbidden'
    if (outcome === 'contradicts' || (isStrange && !isKnown)) {
      collection.refusals.set(witness, `${name}: ${answer.reason}`)
    } else {
      collection.refusals.delete(witness)
    }
    if (outcome === 'ahead') {
      // It has seen a newer checkpoint of ours, so there is one to ask with.
      if (state.kind === 'asking') state.again = true
      sharedUntil = clock.now() + REFRESH_MS
      return
    }
    standings.set(witness, answer)
  }

  function judge(collection: Collection): RoundOutcome {
    if (isSatisfied(getPolicy(), collection.cosignatures.keys())) return 'cosigned'
    if (!isRefusedBy(collection, getPolicy())) return 'unavailable'
    for (const waiter of waiters) if (waiter.size <= collection.size) waiter.reject(unavailable('the witnesses refuse'))
    deps.onRefused()
    return 'refused'
  }

  /** To `asking`; from there, to another round after this one. */
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

  /** From `asking` to `idle`; where somebody still waits, on to `asking` or `pausing`. */
  function endRound() {
    if (state.kind !== 'asking') return
    const { again } = state
    state = { kind: 'idle' }
    if (![...waiters].some((waiter) => !isEnough(latest, waiter))) return
    if (again) startRound()
    else state = { kind: 'pausing', cancel: schedule(startRound, RETRY_MS) }
  }

  return {
    cosign(parameters) {
      if (state.kind === 'stopped') return Promise.reject(state.reason)
      if (isEnough(latest, parameters)) return Promise.resolve(toCosignedNote(latest, getPolicy()))
      return new Promise((resolve, reject) => {
        const end = (run: () => void) => {
          cancel()
          waiters.delete(waiter)
          run()
        }
        const waiter: Waiter = {
          ...parameters,
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
      if (isOld || standings.findMissing().length > 0) startRound()
    },
    reset() {
      latest = undefined
      notes.reset()
    },
    findMissing: standings.findMissing,
    hasQuorum: standings.hasQuorum,
    countWitnesses: standings.count,
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

async function runAlone(_hash: string, run: () => Promise<void>): Promise<void> {
  await run()
}
