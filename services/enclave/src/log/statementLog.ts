import {
  createNoteKey,
  formatNote,
  isSatisfied,
  type NoteKey,
  readQuorumTimes,
  toNoteSignature,
  toVkey,
} from '@countersign/log/core'
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
import type { LogTimes, StateChange } from '../budget/budgetTable.ts'
import { readPolicyTimes } from '../budget/readPolicyTimes.ts'
import { EnclaveError } from '../errors.ts'
import type { KeyWorker } from '../keys/keyWorker.ts'
import type { Placement, StartedBatch } from '../sign/batch.ts'
import type { SignedItem } from '../sign/signItem.ts'
import type { Time } from '../time/time.ts'
import { createFindCosigners } from './cosigners.ts'
import { createLogTree, type LogPart, type LogTree } from './logTree.ts'
import { createPendingStatements, type PendingLimits, type PendingStatement, unavailable } from './pendingStatements.ts'
import { readStart } from './readStart.ts'

export type StatementLogDeps = {
  setting: LogSetting
  /** An ordered subset of the setting's origins. */
  origins: readonly string[]
  keyWorker: Pick<KeyWorker, 'describeLog' | 'signCheckpoint' | 'startTable'>
  bootId: Uint8Array
  configHash: Uint8Array
  time: Pick<Time, 'now' | 'assertKnown' | 'raise'>
  /** Monotonic milliseconds. Unlike the host's clock, they can't be set. */
  elapsedMs(): number
  log: Log
  limits?: Partial<Limits>
}

type Limits = PendingLimits & {
  /** Entries without a quorum of cosignatures. */
  entries: number
}

const LIMITS: Limits = {
  releaseMs: 30_000,
  acknowledgeMs: 60_000,
  // A thousand per second, for as long as they may wait.
  statements: 32_768,
  bytes: 134_217_728,
  entries: 65_536,
  ended: 16_384,
}

const MAX_STATES = 131_072

/** The approximate size of a statement of version 2, without its subject. */
const STATEMENT_BYTES = 2_048

type Appended = LogPart & { tree: LogTree; checkpoint: Promise<string> }

export type StatementLog = ReturnType<typeof createStatementLog>

/**
 * The log that this enclave insists on. Every statement has an entry before it is released, and is released only with a checkpoint that a
 * quorum of witnesses cosigned. The enclave erases statements that no coordinator fetches, with an entry.
 */
export function createStatementLog(deps: StatementLogDeps) {
  const { setting, origins, keyWorker, configHash, time, elapsedMs, log } = deps
  const bootId = toHex(deps.bootId)
  const limits = { ...LIMITS, ...deps.limits }
  /**
   * How long after its date a quorum may cosign a statement. A later statement was signed while the host's clock stood still, so its session
   * and approvals may have expired by then: the enclave drops it. A statement may wait for `releaseMs` before its quote begins, and again after.
   */
  const maxLateMs = MAX_SAMPLE_AGE_MS + 2 * limits.releaseMs
  const findCosigners = createFindCosigners(setting.witnesses)
  const appended = new WeakMap<StartedBatch, Appended>()
  /** The newest log that this boot has started. It opens when a quorum has cosigned the entry of the boot. */
  let tree: LogTree | undefined
  /** The states of the table that a start will need, in the order of the rows. */
  let staged: string[] = []
  /** The newest cosignature of each witness under a checkpoint of this boot, in seconds. */
  const timesS: Record<string, number> = {}
  /** Origins that this boot has abandoned for another. It never returns to them. */
  const abandoned = new Set<string>()
  /** Starts run in sequence: each loads the table of its log. */
  let starting: Promise<unknown> = Promise.resolve()
  const pending = createPendingStatements({
    limits,
    elapsedMs,
    appendEnd: (kind, { keyId, leaf }) => void tree?.append({ kind, keyId, leaf, timeMs: time.now() }),
  })

  async function getKey(origin: string): Promise<NoteKey> {
    return createNoteKey({ name: origin, type: 'ed25519', publicKey: await keyWorker.describeLog(origin) })
  }

  async function start(wanted: NonNullable<LogRequest['start']>) {
    const { origin } = wanted
    assertUsable(origin)
    if (tree?.origin === origin) return
    time.assertKnown()
    const key = await getKey(origin)
    // A call may add to `staged` before the key worker has these.
    const states = [...staged]
    const { frontier, table } = readStart(wanted, key, states)
    if (!(await keyWorker.startTable(origin, states))) throw refused('a state of the table is malformed')
    staged = []
    if (tree !== undefined) abandoned.add(tree.origin)
    tree = createLogTree({ origin, start: frontier, table, sign: (text) => signCheckpoint(key, text), now: time.now })
    const timeMs = time.now()
    tree.append({ kind: 'boot', bootId, configHash: toHex(configHash), timeMs })
    log.info({ msg: 'Started a log', origin, size: frontier.size })
    pending.endUnreleased()
  }

  /** Takes states in parts, from the first row on. */
  function stage({ from, rows }: NonNullable<LogRequest['states']>) {
    if (from === 0) staged = []
    if (from !== staged.length || staged.length + rows.length > MAX_STATES) throw refused('the states are not in order')
    staged.push(...rows)
  }

  function assertUsable(origin: string) {
    if (!origins.includes(origin)) throw refused('not an origin of this enclave')
    if (abandoned.has(origin)) throw refused('this boot has abandoned the log')
  }

  async function signCheckpoint(key: NoteKey, text: string): Promise<string> {
    const signature = await keyWorker.signCheckpoint(key.name, text)
    return formatNote({ text, signatures: [toNoteSignature(key, signature)] })
  }

  function assertOpen(): LogTree {
    if (tree?.isOpen() !== true) throw unavailable('no quorum has cosigned the log of this boot yet')
    return tree
  }

  /**
   * A host that stops the clock would make sessions and approvals last without end. Witnesses that cosign much later than the clock says
   * reveal it. The coordinator chooses which cosignatures to present, so a witness under the host's control that is dated back must not hide
   * it. Returns the time that the witnesses show.
   */
  function learnTime(cosignatures: readonly { timestampS: number }[]): number {
    const { passedS, shownS } = readQuorumTimes(cosignatures, setting)
    const behindMs = 1000 * shownS - time.now()
    if (behindMs <= MAX_SAMPLE_AGE_MS && time.raise(1000 * passedS)) return 1000 * shownS
    const details = `the clock is ${Math.round(behindMs / 1000)} s behind the witnesses’`
    throw new EnclaveError('time_unknown', 'the enclave does not know the time any more', { details })
  }

  /** The size that a quorum has cosigned, with cosigners and times. */
  function verifyCosignatures({ checkpoint, cosignatures }: ReleaseRequest) {
    if (checkpoint === undefined || cosignatures === undefined) return { size: 0, found: [], shownMs: 0 }
    const found = findCosigners(checkpoint + cosignatures.map((line) => `${line}\n`).join(''))
    const { text } = found
    const cosigners = toWitnesses(found.cosignatures)
    const size = tree?.findSize(text)
    if (tree === undefined || size === undefined) throw refused('not a checkpoint of this boot and its log')
    if (!isSatisfied(setting, cosigners)) throw refused(`${cosigners.length} of ${setting.quorum} cosigned`)
    const shownMs = learnTime(found.cosignatures)
    for (const { witness, timestampS } of found.cosignatures) {
      timesS[witness] = Math.max(timesS[witness] ?? 0, timestampS)
    }
    const wasOpen = tree.isOpen()
    tree.setCosigned(size)
    if (!wasOpen) log.info({ msg: 'Opened the log', origin: tree.origin, size })
    return { size, found: found.cosignatures, shownMs }
  }

  /** The batch of a statement that may be released with the batch's quote. Undefined if the note in the request is not enough. */
  function findBatch(
    statement: PendingStatement | undefined,
    { size, found, shownMs }: ReturnType<typeof verifyCosignatures>,
  ) {
    if (statement === undefined) return undefined
    const { state, needs, signedAtMs } = statement
    if (state.kind === 'signed' || state.index >= size) return undefined
    // A vault may require witnesses of its choice in addition to the quorum of the settings.
    const isNeeded = needs === null || isSatisfied(needs, toWitnesses(found))
    // The operator may have chosen the other witnesses. Liars among these can't hold the shown time back.
    const policyMs = needs === null ? 0 : 1000 * readPolicyTimes(found, needs).shownS
    if (state.kind === 'logged' && Math.max(shownMs, policyMs) - signedAtMs > maxLateMs) {
      pending.end(statement, 'dropped')
      return undefined
    }
    return isNeeded ? state.batch : undefined
  }

  /** Drops the statements that wait for a quote that failed. */
  function dropUnquoted(batch: StartedBatch) {
    for (const leaf of batch.leaves) {
      const statement = pending.get(leaf)
      if (statement?.state.kind === 'logged' && statement.state.batch === batch) pending.end(statement, 'dropped')
    }
  }

  return {
    /** The origins that this enclave may write to, the preferred one first, and the verifier keys of all origins of the service. */
    async describe() {
      const keys = await Promise.all(setting.origins.map(getKey))
      return { own: origins, keys: keys.map(toVkey) }
    },

    /** Starts a log, or repeats appended entries. */
    async call({ start: wanted, from = 0, states }: LogRequest): Promise<LogResponse> {
      if (states !== undefined) stage(states)
      if (wanted !== undefined) {
        const started = starting.catch(() => {}).then(() => start(wanted))
        starting = started
        await started
      }
      if (tree === undefined) return { bootId, log: null }
      const { origin } = tree
      // The head may append an entry.
      const head = tree.head()
      const [isOpen, part] = [tree.isOpen(), tree.read(from)]
      return { bootId, log: { origin, isOpen, ...part, checkpoint: await head } }
    },

    /** Takes changes of the table, in the order in which the key worker made them. */
    change(changes: readonly StateChange[]) {
      for (const one of changes) tree?.change(one)
    },

    /** The open log and the times of its witnesses, for budgets. Undefined while no log is open. */
    times: (): LogTimes | undefined =>
      tree?.isOpen() === true ? { origin: tree.origin, timesS: { ...timesS } } : undefined,

    /** Throws `log_unavailable` until a quorum has cosigned the entry of this boot. */
    assertOpen: () => void assertOpen(),

    /** The signing time: later than all ended statements that are no longer remembered, so that no ended statement is created again. */
    now: () => Math.max(time.now(), pending.endedUntilMs() + 1),

    /** Reserves memory for the statements of these items before anything is signed. Throws `log_unavailable`. */
    reserve(items: readonly SignItem[]) {
      const opened = assertOpen()
      if (opened.countUncosigned() >= limits.entries) throw unavailable('too many entries wait for witnesses')
      const sizes = items.map(countBytes)
      const reservation = pending.reserve(sizes)
      return {
        /** Stores statements until they are released. Throws `log_unavailable` and stores none if one can't be stored. */
        add(outcomes: readonly (SignedItem | { error: string })[], coordinatorKey: string) {
          if (tree !== opened) throw unavailable('another log was started')
          for (const [index, outcome] of outcomes.entries()) {
            if ('error' in outcome) continue
            const { revokes, statement } = outcome
            if (revokes !== undefined) pending.revoke(statement.keyId, revokes)
            reservation.add(toPending(outcome, coordinatorKey, sizes[index] ?? 0))
          }
        },
        /** Returns the log entries of statements that are in batches. */
        async collect(placed: readonly Placement[]): Promise<AppendedEntries | null> {
          if (placed.length === 0) return null
          const ranges = [...new Set(placed.map(({ batch }) => batch))].map((batch) => appended.get(batch))
          const isLogged = placed.every(({ batch, leafIndex }) => pending.isLogged(batch.leaves[leafIndex] ?? ''))
          const [first, last] = [ranges[0], ranges.at(-1)]
          const isWhole = isLogged && ranges.every((range) => range?.tree === opened)
          if (!isWhole || first === undefined || last === undefined) throw unavailable('another log was started')
          const entries = ranges.flatMap((range) => range?.entries ?? [])
          const states = ranges.flatMap((range) => range?.states ?? [])
          return { origin: opened.origin, from: first.from, entries, states, checkpoint: await last.checkpoint }
        },
        close: reservation.close,
      }
    },

    /** Appends the entries of a batch whose quote begins. Synchronous. */
    append(batch: StartedBatch) {
      const known = batch.leaves.flatMap((leaf) => pending.get(leaf) ?? [])
      if (tree === undefined || known.length === 0) return
      for (const statement of known) {
        const { keyId, leaf, signedAtMs } = statement
        pending.enter(statement, { index: tree.append({ kind: 'signature', keyId, leaf, timeMs: signedAtMs }), batch })
      }
      const checkpoint = tree.head()
      appended.set(batch, { tree, ...tree.takeNew(), checkpoint })
      batch.signed.catch(() => dropUnquoted(batch))
    },

    /** The second step. Waits for the quotes, and returns each statement only to the coordinator that it names. */
    async release(request: ReleaseRequest, coordinatorKey: string): Promise<ReleaseResponse> {
      const { leaves = [], drop = [], acknowledge = [] } = request
      if (request.bootId !== bootId) throw new EnclaveError('boot_unknown', 'this is another boot')
      const cosigned = verifyCosignatures(request)
      for (const leaf of acknowledge) {
        const statement = pending.find(leaf, coordinatorKey)
        if (statement?.state.kind === 'released') pending.end(statement)
      }
      for (const leaf of drop) {
        const statement = pending.find(leaf, coordinatorKey)
        if (statement !== undefined && statement.state.kind !== 'released') pending.end(statement, 'dropped')
      }
      const quoted = await Promise.all(
        leaves.map((leaf) => findBatch(pending.find(leaf, coordinatorKey), cosigned)?.signed.catch(() => undefined)),
      )
      const used = new Set<SignedBatch>()
      const statements = leaves.map((leaf, index): SignedStatement | null => {
        const signed = quoted[index]
        // The statement may have ended while this call waited.
        const statement = pending.find(leaf, coordinatorKey)
        if (signed === undefined || statement === undefined || statement.state.kind === 'signed') return null
        if (statement.state.kind === 'logged')
          statement.state = { ...statement.state, kind: 'released', sinceMs: elapsedMs() }
        used.add(signed)
        return statement.signed
      })
      return { statements, quotes: [...used].map(toQuote) }
    },

    /** Erases statements that were not fetched in time, and reports those that were not acknowledged in time. */
    expire() {
      const count = pending.expire()
      if (count > 0) log.warn({ msg: 'Gave up statements', count })
    },

    /** Resolves when no statement is stored any more. */
    waitUntilEmpty: pending.waitUntilEmpty,
  }
}

function toQuote({ sequence, quote, eventLog }: SignedBatch) {
  return { sequence, quote, ...(eventLog === undefined ? {} : { eventLog }) }
}

function toPending(
  { leaf, needs, countedFor, revokes: _, ...signed }: SignedItem,
  coordinatorKey: string,
  bytes: number,
): PendingStatement {
  const { keyId, signedAt } = signed.statement
  const signedAtMs = Date.parse(signedAt)
  return {
    signed,
    keyId,
    leaf: toHex(leaf),
    coordinatorKey,
    needs: needs ?? null,
    countedFor,
    bytes,
    signedAtMs,
    state: { kind: 'signed' },
  }
}

/** The approximate memory for an item. Only a transaction's data can be large, and most items are transactions. */
function countBytes(item: SignItem): number {
  if (item.kind !== 'transaction' || item.vault !== undefined) return STATEMENT_BYTES + JSON.stringify(item).length
  // Not validated yet; invalid items aren't signed.
  const { data } = (item.txMetadata ?? {}) as { data?: unknown }
  return 2 * STATEMENT_BYTES + (typeof data === 'string' ? data.length : 0)
}

const toWitnesses = (cosignatures: readonly { witness: string }[]) => cosignatures.map(({ witness }) => witness)

function refused(details: string) {
  return new EnclaveError('log_refused', 'the log cannot do that', { details })
}
