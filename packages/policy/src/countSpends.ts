import { isNatural } from '@countersign/protocol/core'
import type { Budget } from './policy.ts'
import type { Spend } from './readSpend.ts'

/** What was spent of one budget: in its newest window, which counts periods since 1970 and is 0 for the vault's life. */
export type BudgetCounter = { window: number; spent: bigint }

/** A budget, by its index in the policy, before and after a payment. */
export type BudgetChange = { budget: number; window: number; before: bigint; after: bigint }

export type BudgetVerdict =
  | { allowed: true; counters: readonly BudgetCounter[]; changes: readonly BudgetChange[] }
  /** `left` is what this budget still allows. */
  | { allowed: false; budget: number; left: bigint }

/** Whether a budget limits this asset. */
export function isOf({ chainId, token }: Spend, budget: Budget): boolean {
  return budget.chainId === chainId && budget.token === token
}

/**
 * Counts payments that `checkPolicy` allows against every budget of their assets. All of them must allow the payments. Windows never go back:
 * a time before the newest window counts into it.
 */
export function countSpends(
  budgets: readonly Budget[],
  counters: readonly BudgetCounter[],
  spends: readonly Spend[],
  timeS: number,
): BudgetVerdict {
  // With NaN, every payment would start a new window.
  if (!isNatural(timeS)) throw new RangeError(`invalid time: expected whole seconds since 1970, got ${timeS}`)
  const next = budgets.map((_, index) => counters[index] ?? { window: 0, spent: 0n })
  const changes: BudgetChange[] = []
  for (const [index, budget] of budgets.entries()) {
    const paid = spends.filter((spend) => isOf(spend, budget))
    if (paid.length === 0) continue
    const counter = next[index] as BudgetCounter
    const window = budget.periodS === 0 ? 0 : Math.max(counter.window, Math.floor(timeS / budget.periodS))
    const before = window === counter.window ? counter.spent : 0n
    const after = paid.reduce((sum, { amount }) => sum + amount, before)
    const limit = BigInt(budget.limit)
    if (after > limit) return { allowed: false, budget: index, left: limit - before }
    next[index] = { window, spent: after }
    changes.push({ budget: index, window, before, after })
  }
  return { allowed: true, counters: next, changes }
}
