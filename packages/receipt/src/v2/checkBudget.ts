import { readQuorumTimes } from '@countersign/log'
import { countSpends, type Policy, type Spend } from '@countersign/policy'
import type { AttestationReceiptV2, OpeningContent, VaultBudget } from '@countersign/protocol'
import { failIf, needs, StepFailure } from '../check/steps.ts'
import type { LogInclusion } from './checkLog.ts'

/** How far the witnesses' time may be behind the signing time, in seconds, and by how much more if an earlier count is repeated. */
const MAX_BEHIND_S = 60
const REPEAT_S = 600
/** How long after the signing a quorum of the policy's witnesses may cosign. */
const MAX_LATE_MS = 125_000

/** What a payment was counted as: public for a transaction, otherwise in the content half of the opening. */
export function readBudget(
  receipt: AttestationReceiptV2,
  content: OpeningContent | undefined,
): VaultBudget | undefined {
  return receipt.kind === 'transaction' ? receipt.subject.budget : content?.budget
}

type CheckBudgetParameters = {
  policy: Policy
  /** The amounts of the request, if its rule counts them. */
  spends: readonly Spend[] | undefined
  budget: VaultBudget | undefined
  signedAtMs: number
  logged: LogInclusion | undefined
}

/** Repeats the count: amounts, limits and windows, and compares the time with the policy's witnesses. Returns a sentence. */
export function checkBudget({ policy, spends, budget, signedAtMs, logged }: CheckBudgetParameters): string {
  const { budgets = [], log } = policy
  if (spends === undefined || log === null) {
    throw new StepFailure('A payment was counted, but the rule counts none.', 'budget_unexpected')
  }
  if (budget === undefined) throw new StepFailure('The rule counts payments, but none was counted.', 'budget_missing')
  const { origin, cosigners, timesS } = needs(logged, 'there is no log to compare with')
  failIf(origin !== log.origin, 'The log is another one than the policy’s.', 'budget_log')

  const { time, sequence, items } = budget
  failIf(sequence < 1, 'The sequence numbers begin at 1.', 'budget_sequence')
  const counters = budgets.map((_, index) => {
    const item = items.find((one) => one.budget === index)
    return { window: item?.window ?? 0, spent: BigInt(item?.before ?? 0) }
  })
  const verdict = countSpends(budgets, counters, spends, time ?? 0)
  if (!verdict.allowed) {
    throw new StepFailure(`Budget ${verdict.budget + 1} does not allow the payment.`, 'budget_exceeded')
  }
  const isSame = (member: keyof (typeof items)[number]) =>
    items.length === verdict.changes.length &&
    verdict.changes.every((change, index) => String(change[member]) === String(items[index]?.[member]))
  failIf(!isSame('budget'), 'The counted budgets are not those of the paid assets.', 'budget_items')
  failIf(!isSame('window'), 'A window is not the one of the witnesses’ time.', 'budget_window')
  failIf(!isSame('before') || !isSame('after'), 'The counted amounts do not add up.', 'budget_amount')

  const cosignatures = timesS.filter((_, index) => log.witnesses.includes(cosigners[index] ?? ''))
  const { shownS } = readQuorumTimes(
    cosignatures.map((timestampS) => ({ timestampS })),
    log,
  )
  const isLate = 1000 * shownS - signedAtMs > MAX_LATE_MS
  failIf(isLate, 'The policy’s witnesses cosigned too long after the signing.', 'budget_late')
  const periods = items.flatMap(({ budget: index, window }) => {
    const { periodS = 0 } = budgets[index] ?? {}
    return periodS === 0 ? [] : [{ window, periodS }]
  })
  failIf((time === null) === periods.length > 0, 'The witnesses’ time is missing, or not needed.', 'budget_time')
  if (time !== null) {
    const oldestS = Math.floor(signedAtMs / 1000) - MAX_BEHIND_S - (budget.isRepeated ? REPEAT_S : 0)
    failIf(time < oldestS, 'The witnesses’ time is too long before the signing.', 'budget_time')
    // Witnesses that showed the time before the signing show no earlier one under the checkpoint of the receipt.
    failIf(time > shownS, 'The witnesses’ time is later than they cosigned.', 'budget_time')
    const isAhead = periods.some(({ window, periodS }) => window > Math.floor(shownS / periodS))
    failIf(isAhead, 'A window begins after the witnesses cosigned.', 'budget_window')
  }
  const what = items.map(({ budget: index, after }) => `${after} of ${budgets[index]?.limit} of budget ${index + 1}`)
  return `Counted: ${what.join(', ')}${budget.isRepeated ? ' (the same content again)' : ''}.`
}
