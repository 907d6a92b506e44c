import { toCanonicalJson, toHex, type VaultBudget } from '@countersign/protocol'
import type { ReceiptFacts } from './checkReceipts.ts'
import type { Finding } from './findings.ts'

type Count = { txHash: string; digest: string; budget: VaultBudget }

/**
 * Compares what the payments of one vault were counted as. Each change of the vault has its own sequence number, windows never go back, and
 * within a window the counted amounts don't overlap. A missing number is a change that no transaction shows, which is no fault.
 */
export function checkCounts(receipts: readonly ReceiptFacts[]): Finding[] {
  const counts = receipts
    .flatMap(({ txHash, counted }): Count[] => (counted === undefined ? [] : [{ txHash, ...counted }]))
    .toSorted((left, right) => left.budget.sequence - right.budget.sequence)
  const findings: Finding[] = []
  const report = (txHash: string, detail: string) => findings.push({ kind: 'budget-contradicts', txHash, detail })
  const bySequence = new Map<number, Count>()
  /** By the budget's index: the newest window, and the amount spent in it. */
  const newest = new Map<number, { window: number; after: bigint }>()
  for (const count of counts) {
    const { txHash, budget } = count
    const same = bySequence.get(budget.sequence)
    if (same !== undefined) {
      // The same content may be signed again. It is then counted once, and both receipts show that count.
      const isRepeat = same.digest === count.digest && toText(same.budget) === toText(budget)
      if (!isRepeat) report(txHash, `the sequence number ${budget.sequence} is that of ${same.txHash}`)
      continue
    }
    bySequence.set(budget.sequence, count)
    for (const { budget: index, window, before, after } of budget.items) {
      const last = newest.get(index)
      newest.set(index, { window, after: BigInt(after) })
      if (last === undefined || window > last.window) continue
      if (window < last.window) report(txHash, `a window of budget ${index + 1} went back`)
      else if (BigInt(before) < last.after) report(txHash, `an amount of budget ${index + 1} was counted twice`)
    }
  }
  const hidden = (counts.at(-1)?.budget.sequence ?? 0) - bySequence.size
  return hidden === 0 ? findings : [...findings, { kind: 'budget-not-shown', count: hidden }]
}

function toText({ isRepeated: _, ...budget }: VaultBudget): string {
  return toHex(toCanonicalJson(budget))
}
