import type { PolicyLog } from '@countersign/policy/core'
import type { SignedStatement } from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import { createEndedLeaves } from './endedLeaves.ts'

/*
 * The states of a statement, from its signature until it ends:
 *
 *   signed ── a quote covers it ──▶ logged ── fetched ──▶ released ── acknowledged ──▶ ended
 *     │                               │                      └── not in time ──▶ ended, `unacknowledged` in the log
 *     │                               └── dropped, not in time, too old, another log ──▶ ended, `dropped` in the log
 *     └── dropped, or no quote ──▶ ended
 */
type State =
  | { kind: 'signed' }
  /** With the index of its entry in the log, and since when it waits. */
  | { kind: 'logged' | 'released'; index: number; sinceMs: number }

export type HeldStatement = {
  signed: SignedStatement
  keyId: string
  leaf: string
  coordinatorKey: string
  /** Whose cosignatures the vault asks for, beside those of the settings. */
  needs: PolicyLog | null
  bytes: number
  signedAtMs: number
  state: State
}

export type EndEntry = 'dropped' | 'unacknowledged'

export type HeldLimits = {
  /** How long a statement waits to be released. */
  releaseMs: number
  /** How long a released one waits to be acknowledged. */
  acknowledgeMs: number
  statements: number
  bytes: number
  /** Leaves that are remembered though their statements are not kept. */
  ended: number
}

/** The statements that are kept until they end. None is made again after that. */
export function createHeldStatements(deps: {
  limits: HeldLimits
  elapsedMs(): number
  appendEnd(kind: EndEntry, statement: HeldStatement): void
}) {
  const { limits, elapsedMs, appendEnd } = deps
  const held = new Map<string, HeldStatement>()
  const ended = createEndedLeaves(limits.ended)
  const used = { statements: 0, bytes: 0 }
  const settling: (() => void)[] = []

  function giveBack(statements: number, bytes: number) {
    used.statements -= statements
    used.bytes -= bytes
  }

  /** With an entry for this end, if the statement has one for its signature. */
  function end(statement: HeldStatement, entry?: EndEntry) {
    held.delete(statement.leaf)
    ended.add(statement.leaf, statement.signedAtMs)
    giveBack(1, statement.bytes)
    if (entry !== undefined && statement.state.kind !== 'signed') appendEnd(entry, statement)
    if (held.size === 0) for (const resolve of settling.splice(0)) resolve()
  }

  function endIfLate(statement: HeldStatement): boolean {
    const { state } = statement
    if (state.kind === 'signed') return false
    const isReleased = state.kind === 'released'
    if (elapsedMs() - state.sinceMs < (isReleased ? limits.acknowledgeMs : limits.releaseMs)) return false
    end(statement, isReleased ? 'unacknowledged' : 'dropped')
    return true
  }

  return {
    end,
    get: (leaf: string) => held.get(leaf),
    isLogged: (leaf: string) => (held.get(leaf)?.state.kind ?? 'signed') !== 'signed',

    /** The statement of a coordinator, if it is still in time. */
    find(leaf: string, coordinatorKey: string): HeldStatement | undefined {
      const statement = held.get(leaf)
      if (statement === undefined || statement.coordinatorKey !== coordinatorKey) return undefined
      return endIfLate(statement) ? undefined : statement
    },

    /** Room for statements of these sizes. Throws `log_unavailable`. */
    reserve(sizes: readonly number[]) {
      let unused = { statements: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0) }
      const isRoom =
        used.statements + unused.statements <= limits.statements && used.bytes + unused.bytes <= limits.bytes
      if (!isRoom) throw unavailable('too many statements wait')
      giveBack(-unused.statements, -unused.bytes)
      const mine: HeldStatement[] = []
      return {
        /** Throws `log_unavailable` for one that has ended: what was given away could be dropped then, by an entry that says that nobody got it. */
        add(statement: HeldStatement) {
          const { leaf, bytes, signedAtMs } = statement
          if (ended.has(leaf, signedAtMs)) throw unavailable('signed by an earlier call, which is over')
          // The same within one millisecond, by a call that was repeated.
          if (held.has(leaf)) return
          held.set(leaf, statement)
          mine.push(statement)
          unused = { statements: unused.statements - 1, bytes: unused.bytes - bytes }
        },
        /** Gives back what is not used, and forgets what no quote covered. */
        close() {
          giveBack(unused.statements, unused.bytes)
          unused = { statements: 0, bytes: 0 }
          for (const statement of mine) {
            if (statement.state.kind === 'signed' && held.get(statement.leaf) === statement) end(statement)
          }
        },
      }
    },

    /** Ends what is late, and returns how many that were. */
    expire: () => [...held.values()].filter(endIfLate).length,

    /** Of another log than the one that starts now, which can never release them. */
    endUnreleased() {
      for (const statement of held.values()) if (statement.state.kind !== 'released') end(statement, 'dropped')
    },

    /** The latest date of those that ended and are not remembered. */
    endedUntilMs: ended.untilMs,

    /** Resolves when nothing is held any more. */
    settle: () => new Promise<void>((resolve) => (held.size === 0 ? resolve() : settling.push(resolve))),
  }
}

export function unavailable(details: string): EnclaveError {
  return new EnclaveError('log_unavailable', 'the log is not available', { details })
}
