import {
  createNoteKey,
  formatNote,
  isSatisfied,
  type NoteKey,
  readQuorumTimes,
  toNoteSignature,
  toVkey,
} from '@countersign/log/core'
import type { PolicyLog } from '@countersign/policy/core'
import {
  type AppendedEntries,
  type LogRequest,
  type LogResponse,
  type LogSetting,
  MAX_SAMPLE_AGE_MS,
  type ReleaseRequest,
  type ReleaseResponse,
  type SignedBatch,
  type SignedStatement,
  type SignItem,
  toHex,
} from '@countersign/protocol/core'
import type { Log } from '@countersign/service'
import { createByteBudget } from '../byteBudget.ts'
import { EnclaveError } from '../errors.ts'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Placement } from '../sign/batch.ts'
import type { SignedItem } from '../sign/signItem.ts'
import type { Time } from '../time/time.ts'
import { createFindCosigners } from './cosigners.ts'
import { createEndedLeaves } from './endedLeaves.ts'
import { createLogTree, type LogTree } from './logTree.ts'
import { readStart } from './readStart.ts'

/**
 * The log that this enclave insists on. Every statement has an entry before it leaves, and leaves only for a checkpoint that a quorum of
 * witnesses cosigned. What nobody fetches is erased, by an entry.
 */
export type StatementLog = {
  /** The origins that this enclave may write to, the preferred one first, and the verifier keys of all of the service. */
  describe(): Promise<{ own: readonly string[]; keys: readonly string[] }>
  /** Starts a log, or repeats what was appended. */
  call(request: Pick<LogRequest, 'start' | 'from'>): Promise<LogResponse>
  /** Throws `log_unavailable` until a quorum has cosigned the entry of this boot. */
  assertOpen(): void
  /** Makes room for what these items become, before anything is signed. Throws `log_unavailable`. */
  reserve(items: readonly SignItem[]): Reservation
  /** When a statement is signed: later than all that ended and are not remembered, so that none of those is made again. */
  now(): number
  /** Appends the entries of a batch that a quote covers. Does not wait. */
  append(batch: SignedBatch): void
  /** The second step. Statements are answered to the coordinator that they name. */
  release(request: ReleaseRequest, coordinatorKey: string): ReleaseResponse
  /** Erases what was not fetched in time, and reports what was not acknowledged in time. */
  expire(): void
  /** Resolves when no statement is kept any more. */
  settle(): Promise<void>
}

/** Room for the statements of one call. */
type Reservation = {
  /** Keeps what was signed until it is released. Throws `log_unavailable`, and keeps nothing. */
  hold(outcomes: readonly (SignedItem | { error: string })[], coordinatorKey: string): void
  /** Where the statements are in the log, once quotes cover them. The rest of the room is given back. */
  collect(placed: readonly Placement[]): Promise<AppendedEntries | null>
  /** Gives back what is not used, and forgets what no quote covered. */
  close(): void
}

export type StatementLogDeps = {
  setting: LogSetting
  /** An ordered part of the setting's. */
  origins: readonly string[]
  keyWorker: Pick<KeyWorker, 'describeLog' | 'signCheckpoint'>
  bootId: Uint8Array
  configHash: Uint8Array
  time: Pick<Time, 'now' | 'assertKnown' | 'raise'>
  /** Milliseconds since any moment. Not the host's clock, which could be set. */
  elapsedMs(): number
  log: Log
  limits?: Partial<Limits>
}

type Limits = {
  /** How long a statement waits to be released. */
  releaseMs: number
  /** How long a released one waits to be acknowledged. */
  acknowledgeMs: number
  statements: number
  bytes: number
  /** Entries that no quorum has cosigned. */
  entries: number
  /** Leaves that are remembered though their statements are not kept. */
  ended: number
}

const LIMITS: Limits = {
  releaseMs: 30_000,
  acknowledgeMs: 60_000,
  // A thousand a second for as long as they may wait.
  statements: 32_768,
  bytes: 134_217_728,
  entries: 65_536,
  ended: 16_384,
}

/** A statement of version 2 without what it is about, roughly. */
const STATEMENT_BYTES = 2_048

type Held = {
  signed: SignedStatement
  keyId: string
  leaf: string
  coordinatorKey: string
  needs: PolicyLog | null
  bytes: number
  signedAtMs: number
  /** Of its entry, and since when: once a quote covers it. */
  index?: number
  sinceMs: number
  isReleased: boolean
}

type Appended = { tree: LogTree; from: number; entries: string[]; checkpoint: Promise<string> }

export function createStatementLog(deps: StatementLogDeps): StatementLog {
  const { setting, origins, keyWorker, bootId, configHash, time, elapsedMs, log } = deps
  const limits = { ...LIMITS, ...deps.limits }
  /**
   * So much later than its date a quorum may see a statement. One that is older was signed while the clock stood still, and the host has put
   * it right since: its session and approvals were judged by a time that was over. For the quote a statement may wait as long as after it.
   */
  const maxLateMs = MAX_SAMPLE_AGE_MS + 2 * limits.releaseMs
  const findCosigners = createFindCosigners(setting.witnesses)
  const room = { statements: createByteBudget(limits.statements), bytes: createByteBudget(limits.bytes) }
  const held = new Map<string, Held>()
  const appended = new WeakMap<SignedBatch, Appended>()
  const left = new Set<string>()
  const settling: (() => void)[] = []
  let tree: LogTree | undefined
  const ended = createEndedLeaves(limits.ended)

  async function getKey(origin: string): Promise<NoteKey> {
    return createNoteKey({ name: origin, type: 'ed25519', publicKey: await keyWorker.describeLog(origin) })
  }

  async function start(wanted: NonNullable<LogRequest['start']>) {
    const { origin } = wanted
    assertUsable(origin)
    if (tree?.origin === origin) return
    time.assertKnown()
    const key = await getKey(origin)
    // Nothing waits from here on, so of two starts of one origin the second finds the first.
    if (tree?.origin === origin) return
    assertUsable(origin)
    const frontier = readStart(wanted, key)
    if (tree !== undefined) left.add(tree.origin)
    tree = createLogTree({ origin, start: frontier, sign: (text) => signCheckpoint(key, text) })
    const timeMs = time.now()
    tree.append({ kind: 'boot', bootId: toHex(bootId), configHash: toHex(configHash), timeMs })
    log.info({ msg: 'Started a log', origin, size: frontier.size })
    // What waited for the log before can never be released by it.
    for (const statement of held.values()) if (!statement.isReleased) erase(statement)
  }

  function assertUsable(origin: string) {
    if (!origins.includes(origin)) throw refused('not an origin of this enclave')
    if (left.has(origin)) throw refused('this boot has left the log')
  }

  async function signCheckpoint(key: NoteKey, text: string): Promise<string> {
    const signature = await keyWorker.signCheckpoint(key.name, text)
    return formatNote({ text, signatures: [toNoteSignature(key, signature)] })
  }

  function assertOpen(): LogTree {
    if (tree?.isOpen() !== true) throw unavailable('no quorum has cosigned the log of this boot yet')
    return tree
  }

  /** What has an entry gets another one, that it is no more. */
  function erase(statement: Held) {
    forget(statement)
    if (statement.index !== undefined) appendEnd('dropped', statement)
  }

  function appendEnd(kind: 'dropped' | 'unacknowledged', { keyId, leaf }: Held) {
    tree?.append({ kind, keyId, leaf, timeMs: time.now() })
  }

  /** It is not made again: what was given away could be dropped then, by an entry that says that nobody got it. */
  function forget({ leaf, bytes, signedAtMs }: Held) {
    held.delete(leaf)
    ended.add(leaf, signedAtMs)
    giveBack(1, bytes)
    if (held.size === 0) for (const resolve of settling.splice(0)) resolve()
  }

  function giveBack(statements: number, bytes: number) {
    room.statements.giveBack(statements)
    room.bytes.giveBack(bytes)
  }

  function expireOne(statement: Held): boolean {
    const { isReleased, index, sinceMs } = statement
    const limitMs = isReleased ? limits.acknowledgeMs : limits.releaseMs
    if (index === undefined || elapsedMs() - sinceMs < limitMs) return false
    if (!isReleased) erase(statement)
    else {
      forget(statement)
      appendEnd('unacknowledged', statement)
    }
    return true
  }

  /** Those of a coordinator, and still in time. */
  function findOwn(leaf: string, coordinatorKey: string): Held | undefined {
    const statement = held.get(leaf)
    if (statement === undefined || statement.coordinatorKey !== coordinatorKey) return undefined
    return expireOne(statement) ? undefined : statement
  }

  /**
   * A host that stops the clock would have sessions and approvals that never end: witnesses who cosign much later than the clock says show
   * it. The coordinator chooses whose cosignatures are presented, so a witness of the host's own that is dated back must not hide it.
   * Returns the time that they show.
   */
  function learnTime(cosignatures: readonly { timestampS: number }[]): number {
    const { passedS, shownS } = readQuorumTimes(cosignatures, setting)
    const behindMs = 1000 * shownS - time.now()
    if (behindMs <= MAX_SAMPLE_AGE_MS && time.raise(1000 * passedS)) return 1000 * shownS
    const details = `the clock is ${Math.round(behindMs / 1000)} s behind the witnesses’`
    throw new EnclaveError('time_unknown', 'the enclave does not know the time any more', { details })
  }

  /** Up to which size a quorum has cosigned, who, and when. */
  function judge({ checkpoint, cosignatures }: ReleaseRequest) {
    if (checkpoint === undefined || cosignatures === undefined) return { size: 0, cosigners: [], shownMs: 0 }
    const found = findCosigners(checkpoint + cosignatures.map((line) => `${line}\n`).join(''))
    const { text } = found
    const cosigners = found.cosignatures.map(({ witness }) => witness)
    const size = tree?.findSize(text)
    if (tree === undefined || size === undefined) throw refused('not a checkpoint of this boot and its log')
    if (!isSatisfied(setting, cosigners)) throw refused(`${cosigners.length} of ${setting.quorum} cosigned`)
    const shownMs = learnTime(found.cosignatures)
    const wasOpen = tree.isOpen()
    tree.setCosigned(size)
    if (!wasOpen) log.info({ msg: 'Opened the log', origin: tree.origin, size })
    return { size, cosigners, shownMs }
  }

  return {
    async describe() {
      const keys = await Promise.all(setting.origins.map(getKey))
      return { own: origins, keys: keys.map(toVkey) }
    },

    async call({ start: wanted, from = 0 }) {
      if (wanted !== undefined) await start(wanted)
      const answer = { bootId: toHex(bootId) }
      if (tree === undefined) return { ...answer, log: null }
      const { origin } = tree
      const [isOpen, entries, head] = [tree.isOpen(), tree.read(from), tree.head()]
      return { ...answer, log: { origin, isOpen, ...entries, checkpoint: await head } }
    },

    assertOpen,

    now: () => Math.max(time.now(), ended.untilMs() + 1),

    reserve(items) {
      const opened = assertOpen()
      if (opened.countUncosigned() >= limits.entries) throw unavailable('too many entries wait for witnesses')
      const sizes = items.map(countBytes)
      let unused = { statements: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
      if (!room.statements.take(unused.statements)) throw unavailable('too many statements wait')
      if (!room.bytes.take(unused.bytes)) {
        room.statements.giveBack(unused.statements)
        throw unavailable('too many statements wait')
      }
      const mine: Held[] = []
      return {
        hold(outcomes, coordinatorKey) {
          if (tree !== opened) throw unavailable('another log was started')
          for (const [index, outcome] of outcomes.entries()) {
            if ('error' in outcome) continue
            const statement = toHeld(outcome, { coordinatorKey, bytes: sizes[index] ?? 0 })
            if (ended.has(statement.leaf, statement.signedAtMs))
              throw unavailable('signed by an earlier call, which is over')
            // The same within one millisecond, by a call that was repeated.
            if (held.has(statement.leaf)) continue
            held.set(statement.leaf, statement)
            mine.push(statement)
            unused = { statements: unused.statements - 1, bytes: unused.bytes - statement.bytes }
          }
        },
        async collect(placed) {
          if (placed.length === 0) return null
          const ranges = [...new Set(placed.map(({ batch }) => batch))].map((batch) => appended.get(batch))
          const isWhole = placed.every(
            ({ batch, leafIndex }) => held.get(batch.leaves[leafIndex] ?? '')?.index !== undefined,
          )
          const [first, last] = [ranges[0], ranges.at(-1)]
          if (first === undefined || last === undefined) throw unavailable('another log was started')
          if (!isWhole || ranges.some((range) => range?.tree !== opened)) throw unavailable('another log was started')
          const entries = ranges.flatMap((range) => range?.entries ?? [])
          return { origin: opened.origin, from: first.from, entries, checkpoint: await last.checkpoint }
        },
        close() {
          giveBack(unused.statements, unused.bytes)
          unused = { statements: 0, bytes: 0 }
          for (const statement of mine) {
            if (statement.index === undefined && held.get(statement.leaf) === statement) forget(statement)
          }
        },
      }
    },

    append(batch) {
      const known = batch.leaves.map((leaf) => held.get(leaf)).filter((statement) => statement !== undefined)
      if (tree === undefined || known.length === 0) return
      for (const statement of known) {
        const { keyId, leaf, signedAtMs } = statement
        statement.index = tree.append({ kind: 'signature', keyId, leaf, timeMs: signedAtMs })
        if (!statement.isReleased) statement.sinceMs = elapsedMs()
      }
      const checkpoint = tree.head()
      appended.set(batch, { tree, ...tree.takeNew(), checkpoint })
    },

    release(request, coordinatorKey) {
      const { leaves = [], drop = [], acknowledge = [] } = request
      if (request.bootId !== toHex(bootId)) throw new EnclaveError('boot_unknown', 'this is another boot')
      const { size, cosigners, shownMs } = judge(request)
      for (const leaf of acknowledge) {
        const statement = findOwn(leaf, coordinatorKey)
        if (statement?.isReleased === true) forget(statement)
      }
      for (const leaf of drop) {
        const statement = findOwn(leaf, coordinatorKey)
        if (statement?.isReleased === false) erase(statement)
      }
      const statements = leaves.map((leaf) => {
        const statement = findOwn(leaf, coordinatorKey)
        if (statement?.index === undefined || statement.index >= size) return null
        if (!statement.isReleased && shownMs - statement.signedAtMs > maxLateMs) {
          erase(statement)
          return null
        }
        // A vault may ask for witnesses of its own choice beside the quorum of the settings.
        if (statement.needs !== null && !isSatisfied(statement.needs, cosigners)) return null
        if (!statement.isReleased) statement.sinceMs = elapsedMs()
        statement.isReleased = true
        return statement.signed
      })
      return { statements }
    },

    expire() {
      const expired = [...held.values()].filter(expireOne)
      if (expired.length > 0) log.warn({ msg: 'Gave up statements', count: expired.length })
    },

    settle: () => new Promise((resolve) => (held.size === 0 ? resolve() : settling.push(resolve))),
  }

  function toHeld(
    { leaf, needs, ...signed }: SignedItem,
    { coordinatorKey, bytes }: { coordinatorKey: string; bytes: number },
  ): Held {
    const { keyId, signedAt } = signed.statement
    const facts = {
      keyId,
      leaf: toHex(leaf),
      coordinatorKey,
      needs: needs ?? null,
      bytes,
      signedAtMs: Date.parse(signedAt),
    }
    return { signed, ...facts, sinceMs: elapsedMs(), isReleased: false }
  }
}

/** What is kept of an item, about. A transaction's data is all that can be much of it, and most items are transactions. */
function countBytes(item: SignItem): number {
  if (item.kind !== 'transaction' || item.vault !== undefined) return STATEMENT_BYTES + JSON.stringify(item).length
  // Not checked yet: what is none is not signed.
  const { data } = (item.txMetadata ?? {}) as { data?: unknown }
  return 2 * STATEMENT_BYTES + (typeof data === 'string' ? data.length : 0)
}

function refused(details: string) {
  return new EnclaveError('log_refused', 'the log cannot do that', { details })
}

function unavailable(details: string) {
  return new EnclaveError('log_unavailable', 'the log is not available', { details })
}
