import type { PolicyLog } from '@countersign/policy/core'
import type { SignedStatement } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import type { StartedBatch } from '../sign/batch.ts'
import { createEndedLeaves } from './endedLeaves.ts'

/*
 * The states of a statement:
 *
 *   signed ── its quote begins ──▶ logged ── fetched ──▶ released ── acknowledged ──▶ ended
 *     │                              │                      └── not in time ──▶ ended, `unacknowledged` in the log
 *     │                              └── no quote, dropped, not in time, too old, another log ──▶ ended, `dropped` in the log
 *     └── dropped, or its call failed ──▶ ended
 */
type State =
  | { kind: 'signed' }
  /** `index` is that of its log entry, and `batch` the one whose quote covers it. `sinceMs` is when it entered this state. */
  | { kind: 'logged' | 'released'; index: number; batch: StartedBatch; sinceMs: number }

export type PendingStatement = {
  signed: SignedStatement
  keyId: string
  leaf: string
  coordinatorKey: string
  /** The witnesses that the vault requires, in addition to those of the settings. */
  needs: PolicyLog | null
  /** Present if the payment is counted against budgets: the vault's keys that approved it, by their index among the approvers. */
  countedFor: readonly number[] | undefined
  bytes: number
  signedAtMs: number
  state: State
}

export type EndEntry = 'dropped' | 'unacknowledged'

export type PendingLimits = {
  /** How long a statement waits to be released. */
  releaseMs: number
  /** How long a released statement waits to be acknowledged. */
  acknowledgeMs: number
  statements: number
  bytes: number
  /** How many leaves of ended statements to remember. */
  ended: number
}

/** The approximate size of a quote in hex with its event log. */
const QUOTE_BYTES = 32_768

/** Stores statements until they end. An ended statement is never accepted again. */
export function createPendingStatements(deps: {
  limits: PendingLimits
  elapsedMs(): number
  appendEnd(kind: EndEntry, statement: PendingStatement): void
}) {
  const { limits, elapsedMs, appendEnd } = deps
  const pending = new Map<string, PendingStatement>()
  const ended = createEndedLeaves(limits.ended)
  /** The number of pending statements per batch. A quote is stored while its batch has any. */
  const batches = new Map<StartedBatch, number>()
  const used = { statements: 0, bytes: 0 }
  const waiting: (() => void)[] = []
  /** Keys that this boot has revoked, as `<key ID> <approver>`. */
  const revoked = new Set<string>()
  const isRevoked = ({ keyId, countedFor = [] }: PendingStatement) =>
    countedFor.some((approver) => revoked.has(`${keyId} ${approver}`))

  function freeMemory(statements: number, bytes: number) {
    used.statements -= statements
    used.bytes -= bytes
  }

  function countIn(batch: StartedBatch, change: 1 | -1) {
    const before = batches.get(batch) ?? 0
    const count = before + change
    if (count === 0) batches.delete(batch)
    else batches.set(batch, count)
    if (before === 0) freeMemory(0, -QUOTE_BYTES)
    if (count === 0) freeMemory(0, QUOTE_BYTES)
  }

  /** Appends `entry` to the log only if the log has the signature of the statement. */
  function end(statement: PendingStatement, entry?: EndEntry) {
    pending.delete(statement.leaf)
    ended.add(statement.leaf, statement.signedAtMs)
    freeMemory(1, statement.bytes)
    if (statement.state.kind !== 'signed') {
      countIn(statement.state.batch, -1)
      if (entry !== undefined) appendEnd(entry, statement)
    }
    if (pending.size === 0) for (const resolve of waiting.splice(0)) resolve()
  }

  function endIfLate(statement: PendingStatement): boolean {
    const { state } = statement
    if (state.kind === 'signed') return false
    const isReleased = state.kind === 'released'
    if (elapsedMs() - state.sinceMs < (isReleased ? limits.acknowledgeMs : limits.releaseMs)) return false
    end(statement, isReleased ? 'unacknowledged' : 'dropped')
    return true
  }

  return {
    end,
    get: (leaf: string) => pending.get(leaf),
    isLogged: (leaf: string) => (pending.get(leaf)?.state.kind ?? 'signed') !== 'signed',

    /** Call this when a statement's quote begins and the log has its entry. A repeated call adds an entry, but the first batch counts. */
    enter(statement: PendingStatement, place: { index: number; batch: StartedBatch }) {
      const { state } = statement
      if (state.kind === 'signed') {
        countIn(place.batch, 1)
        statement.state = { kind: 'logged', ...place, sinceMs: elapsedMs() }
      } else statement.state = { ...state, index: place.index }
    },

    /** The statement, if it belongs to this coordinator and has not timed out. */
    find(leaf: string, coordinatorKey: string): PendingStatement | undefined {
      const statement = pending.get(leaf)
      if (statement === undefined || statement.coordinatorKey !== coordinatorKey) return undefined
      return endIfLate(statement) ? undefined : statement
    },

    /** Reserves memory for statements of these sizes. Throws `log_unavailable` if the limit is reached. */
    reserve(sizes: readonly number[]) {
      let unused = { statements: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
      const fits = used.statements + unused.statements <= limits.statements && used.bytes + unused.bytes <= limits.bytes
      if (!fits) throw unavailable('too many pending statements')
      freeMemory(-unused.statements, -unused.bytes)
      const mine: PendingStatement[] = []
      return {
        /** Throws `log_unavailable` if the leaf has ended. Otherwise the log could mark a released statement as `dropped`. */
        add(statement: PendingStatement) {
          const { leaf, bytes, signedAtMs } = statement
          if (ended.has(leaf, signedAtMs)) throw unavailable('signed by an earlier call that has ended')
          if (isRevoked(statement)) throw unavailable('its approver was revoked meanwhile')
          // A repeated call within the same millisecond creates the same statement.
          if (pending.has(leaf)) return
          pending.set(leaf, statement)
          mine.push(statement)
          unused = { statements: unused.statements - 1, bytes: unused.bytes - bytes }
        },
        /** Frees unused memory, and ends the statements that are in no batch. */
        close() {
          freeMemory(unused.statements, unused.bytes)
          unused = { statements: 0, bytes: 0 }
          for (const statement of mine) {
            if (statement.state.kind === 'signed' && pending.get(statement.leaf) === statement) end(statement)
          }
        },
      }
    },

    /** Ends the unreleased statements that a key approved. They stay counted. */
    revoke(keyId: string, approver: number) {
      revoked.add(`${keyId} ${approver}`)
      for (const statement of pending.values()) {
        if (statement.state.kind !== 'released' && isRevoked(statement)) end(statement, 'dropped')
      }
    },

    /** Ends all statements that timed out, and returns their number. */
    expire: () => [...pending.values()].filter(endIfLate).length,

    /** Ends unreleased statements of an earlier log: the log that starts now can't release them. */
    endUnreleased() {
      for (const statement of pending.values()) if (statement.state.kind !== 'released') end(statement, 'dropped')
    },

    /** The latest date of the ended statements that are no longer remembered. */
    endedUntilMs: ended.untilMs,

    /** Resolves when all statements have ended. */
    waitUntilEmpty: () => new Promise<void>((resolve) => (pending.size === 0 ? resolve() : waiting.push(resolve))),
  }
}

export function unavailable(details: string): EnclaveError {
  return new EnclaveError('log_unavailable', 'the log is not available', { details })
}
