import { createBudgetTable } from '../src/budget/budgetTable.ts'

/** An enclave without a log: no budget can be counted. */
export const noBudgets = {
  budgets: createBudgetTable({ random: (length) => new Uint8Array(length) }),
  witnesses: [],
  elapsedMs: () => 0,
}
