import {
  type Budget,
  countSpends,
  parseStateHex,
  type Spend,
  toStateHex,
  type VaultState,
} from '@countersign/policy/core'
import { toHex, type VaultBudget } from '@countersign/protocol/core'
import type { Random } from '../ports.ts'

/** A new state of a row. */
export type StateChange = { row: number; state: string }

/** What the signing thread knows of the log: the one that is open, and the newest cosignature of each witness under a checkpoint of this boot. */
export type LogTimes = { origin: string; timesS: Readonly<Record<string, number>> }

export type CountParameters = {
  keyId: string
  /** Identifies repeated requests. */
  digest: string
  budgets: readonly Budget[]
  spends: readonly Spend[]
  /** The witnesses' time. Undefined if it is unknown. */
  timeS: number | undefined
  /** The signing time. */
  nowS: number
  elapsedMs: number
}

export type CountVerdict =
  | VaultBudget
  | { error: 'budget_time' | 'budget_unavailable' }
  /** `left` is what the budget still allows, in decimal. */
  | { error: 'budget_exceeded'; budget: number; left: string }

export type BudgetTable = ReturnType<typeof createBudgetTable>

const MAX_ROWS = 131_072
/** Rows for vaults whose first change revokes a key. */
const RESERVED_ROWS = 1_024
const MAX_REPEATS = 65_536
const REPEAT_MS = 600_000
/** How far the witnesses' time may be behind the signing time. */
const MAX_BEHIND_S = 60

/**
 * The states of all vaults with budgets, in the thread that signs: checking, counting and signing are one step. The main thread writes the
 * root of the table to the log before a signature is released.
 */
export function createBudgetTable({ random }: { random: Random }) {
  /** The log that has the root of this table. */
  let origin: string | undefined
  const rows = new Map<string, { row: number; state: VaultState }>()
  /** By key ID and digest, the oldest first. */
  const counted = new Map<string, { budget: VaultBudget; atMs: number }>()
  let changes: StateChange[] = []

  function findState(keyId: string): VaultState {
    return rows.get(keyId)?.state ?? { keyId, random: '', sequence: 0, revoked: 0, counters: [] }
  }

  const isFull = (keyId: string, limit: number) => !rows.has(keyId) && rows.size >= limit

  function change(state: VaultState): void {
    const row = rows.get(state.keyId)?.row ?? rows.size
    const next = { ...state, random: toHex(random(16)), sequence: state.sequence + 1 }
    rows.set(state.keyId, { row, state: next })
    changes.push({ row, state: toStateHex(next) })
  }

  function findRepeat(name: string, elapsedMs: number): VaultBudget | undefined {
    const known = counted.get(name)
    return known !== undefined && elapsedMs - known.atMs < REPEAT_MS ? known.budget : undefined
  }

  return {
    /** Takes the states of a log that starts. Returns false if one is malformed or repeats a vault. */
    start(startOrigin: string, states: readonly string[]): boolean {
      origin = startOrigin
      rows.clear()
      counted.clear()
      changes = []
      for (const [row, text] of states.entries()) {
        const state = parseStateHex(text)
        if (state === undefined || rows.has(state.keyId)) return false
        rows.set(state.keyId, { row, state })
      }
      return states.length <= MAX_ROWS
    },

    /** Whether the table belongs to the log with this origin. */
    isOf: (wanted: string | undefined) => origin !== undefined && origin === wanted,

    isRevoked: (keyId: string, approver: number) => ((findState(keyId).revoked >>> approver) & 1) === 1,

    /** Counts a payment. Everything else has been checked. */
    count({ keyId, digest, budgets, spends, timeS, nowS, elapsedMs }: CountParameters): CountVerdict {
      const name = `${keyId} ${digest}`
      const repeat = findRepeat(name, elapsedMs)
      if (repeat !== undefined) return { ...repeat, isRepeated: true }
      const state = findState(keyId)
      if (isFull(keyId, MAX_ROWS - RESERVED_ROWS)) return { error: 'budget_unavailable' }
      const isTimed = budgets.some(
        ({ periodS, chainId, token }) =>
          periodS > 0 && spends.some((spend) => spend.chainId === chainId && spend.token === token),
      )
      const isLate = timeS === undefined || nowS - timeS > MAX_BEHIND_S
      if (isTimed && isLate) return { error: 'budget_time' }
      const verdict = countSpends(budgets, state.counters, spends, timeS ?? 0)
      if (!verdict.allowed) return { error: 'budget_exceeded', budget: verdict.budget, left: String(verdict.left) }
      change({ ...state, counters: verdict.counters })
      const budget: VaultBudget = {
        time: isTimed ? (timeS ?? null) : null,
        sequence: state.sequence + 1,
        isRepeated: false,
        items: verdict.changes.map(({ budget, window, before, after }) => ({
          budget,
          window,
          before: String(before),
          after: String(after),
        })),
      }
      counted.delete(name)
      counted.set(name, { budget, atMs: elapsedMs })
      if (counted.size > MAX_REPEATS) counted.delete(counted.keys().next().value ?? '')
      return budget
    },

    /** Revokes a key for ever. Returns the sequence number of the change, or undefined if the table is full. */
    revoke(keyId: string, approver: number, budgets: number): number | undefined {
      if (isFull(keyId, MAX_ROWS)) return undefined
      const state = findState(keyId)
      const counters = Array.from({ length: budgets }, (_, at) => state.counters[at] ?? { window: 0, spent: 0n })
      change({ ...state, counters, revoked: (state.revoked | (1 << approver)) >>> 0 })
      return state.sequence + 1
    },

    /** The changes since the last call, in their order. */
    takeChanges(): StateChange[] {
      const taken = changes
      changes = []
      return taken
    },
  }
}
