/*
 * A model of budgets, written from their specification without shared code. It keeps every signed payment and no counter, so it is slow: to
 * decide about a payment, it adds up all earlier ones of the same window.
 */

/** A payment that was signed. `at` is the start of the window it counts in, per budget. */
type SignedPayment = { paid: ReadonlyMap<number, bigint>; at: ReadonlyMap<number, number> }

export type NaiveBudget = { asset: string; limit: bigint; periodS: number }
export type NaiveSpend = { asset: string; amount: bigint }

export type NaiveAnswer =
  | { signed: true; changes: { budget: number; startS: number; before: bigint; after: bigint }[] }
  | { signed: false; budget: number; left: bigint }

export function createNaiveBudgets(budgets: readonly NaiveBudget[]) {
  const history: SignedPayment[] = []

  /** The first second of the window: at this time, or of the latest payment if that one is in a later window. */
  function findStart(index: number, { periodS }: NaiveBudget, timeS: number): number {
    if (periodS === 0) return 0
    let startS = timeS - (timeS % periodS)
    for (const { at } of history) startS = Math.max(startS, at.get(index) ?? 0)
    return startS
  }

  function sum(index: number, startS: number): bigint {
    let total = 0n
    for (const { paid, at } of history) if (at.get(index) === startS) total += paid.get(index) ?? 0n
    return total
  }

  return {
    pay(spends: readonly NaiveSpend[], timeS: number): NaiveAnswer {
      const paid = new Map<number, bigint>()
      for (const { asset, amount } of spends) {
        for (const [index, budget] of budgets.entries()) {
          if (budget.asset === asset) paid.set(index, (paid.get(index) ?? 0n) + amount)
        }
      }
      const changes = [...paid.keys()]
        .sort((left, right) => left - right)
        .map((index) => {
          const startS = findStart(index, budgets[index] as NaiveBudget, timeS)
          const before = sum(index, startS)
          return { budget: index, startS, before, after: before + (paid.get(index) as bigint) }
        })
      const refused = changes.find(({ budget, after }) => after > (budgets[budget] as NaiveBudget).limit)
      if (refused !== undefined) {
        const { limit } = budgets[refused.budget] as NaiveBudget
        return { signed: false, budget: refused.budget, left: limit - refused.before }
      }
      history.push({ paid, at: new Map(changes.map(({ budget, startS }) => [budget, startS])) })
      return { signed: true, changes }
    },
    /** How many windows were used up exactly. Throws if more was signed in any of them than the limit allows. */
    countFull(): number {
      let full = 0
      for (const [index, { limit }] of budgets.entries()) {
        for (const startS of new Set(history.flatMap(({ at }) => at.get(index) ?? []))) {
          const total = sum(index, startS)
          if (total > limit) throw new Error(`overspent: ${total} of ${limit} under budget ${index}`)
          if (total === limit && limit > 0n) full += 1
        }
      }
      return full
    },
  }
}
