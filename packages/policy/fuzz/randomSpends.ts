import type { Hex } from '@countersign/protocol'
import { createRandom, type Random } from '../../protocol/fuzz/random.ts'
import { type BudgetCounter, type BudgetVerdict, countSpends } from '../src/countSpends.ts'
import type { Budget } from '../src/policy.ts'
import type { Spend } from '../src/readSpend.ts'
import { createNaiveBudgets, type NaiveAnswer } from './naiveBudgets.ts'

/*
 * Histories of a vault with budgets: several of one asset, windows of every kind, amounts at the limit, payments of several assets at once,
 * and a clock that also goes back.
 */

const CHAINS = [1, 8453]
const TOKENS: readonly (Hex | null)[] = [null, `0x${'a1'.repeat(20)}`]
const PERIODS = [0, 3_600, 3_601, 86_400, 31_536_000]
const LIMITS = [0n, 1n, 3n, 10n, 100n, 2n ** 256n - 1n]
const MAX_PAYMENTS = 16

/** `full` counts the windows that were used up exactly, which shows that the test is strict enough. */
export type SpendTotals = { signed: number; refused: number; full: number }

/**
 * Plays random histories, and compares each answer with the model's. Then adds up what the engine signed. Throws if it signed more than a
 * limit, or answered otherwise than the model.
 */
export function checkRandomSpends({
  runs,
  seed,
  count = countSpends,
}: {
  runs: number
  seed: number
  /** The engine. Tests replace it with a faulty one, which must be detected. */
  count?: typeof countSpends
}): SpendTotals {
  const random = createRandom(seed)
  const totals = { signed: 0, refused: 0, full: 0 }
  for (let run = 0; run < runs; run++) playHistory(random, count, totals, run)
  return totals
}

function playHistory(random: Random, count: typeof countSpends, totals: SpendTotals, run: number): void {
  const { below, pick } = random
  const budgets = drawBudgets(random)
  const model = createNaiveBudgets(
    budgets.map(({ limit, periodS, ...asset }) => ({ asset: toAsset(asset), limit: BigInt(limit), periodS })),
  )
  let counters: readonly BudgetCounter[] = []
  let timeS = pick([0, 3_599, 86_399, 1_800_000_000 + below(100_000)])
  /** What the engine signed, by budget and window, added up without the model. */
  const signed = new Map<string, bigint>()
  for (let payment = below(MAX_PAYMENTS); payment >= 0; payment--) {
    timeS = Math.max(0, timeS + pick([0, 0, 1, 60, 3_600, 86_400, 40_000_000, -1, -3_600, -100_000, -40_000_000]))
    const spends = drawSpends(random, budgets, counters)
    const verdict = count(budgets, counters, spends, timeS)
    const answer = model.pay(
      spends.map(({ amount, ...asset }) => ({ asset: toAsset(asset), amount })),
      timeS,
    )
    if (!isSame(verdict, answer, budgets)) {
      throw new Error(`run ${run}: the model differs: ${toText({ budgets, counters, spends, timeS, verdict, answer })}`)
    }
    if (!verdict.allowed) {
      totals.refused += 1
      continue
    }
    totals.signed += 1
    counters = verdict.counters
    for (const { budget, window } of verdict.changes) {
      const { limit, periodS: _, ...asset } = budgets[budget] as Budget
      const key = `${budget} ${window}`
      const paid = spends.filter((spend) => toAsset(spend) === toAsset(asset))
      const total = paid.reduce((sum, { amount }) => sum + amount, signed.get(key) ?? 0n)
      signed.set(key, total)
      if (total > BigInt(limit)) throw new Error(`run ${run}: overspent: ${total} of ${limit}`)
    }
  }
  totals.full += model.countFull()
}

/** The model names a window by its start. */
function isSame(verdict: BudgetVerdict, answer: NaiveAnswer, budgets: readonly Budget[]): boolean {
  if (!verdict.allowed) return !answer.signed && verdict.budget === answer.budget && verdict.left === answer.left
  if (!answer.signed || verdict.changes.length !== answer.changes.length) return false
  return verdict.changes.every(({ budget, window, before, after }, at) => {
    const other = answer.changes[at]
    const isSameWindow = other?.budget === budget && other.startS === window * (budgets[budget] as Budget).periodS
    return isSameWindow && other.before === before && other.after === after
  })
}

function drawBudgets({ below, pick }: Random): Budget[] {
  const drawn = Array.from({ length: 1 + below(5) }, () => ({
    chainId: pick(CHAINS),
    token: pick(TOKENS),
    limit: String(pick(LIMITS)),
    periodS: pick(PERIODS),
  }))
  return [...new Map(drawn.map((one) => [`${toAsset(one)} ${one.periodS}`, one])).values()]
}

/** One or two payments, of assets with a budget. Often exactly what is left, or one unit more. */
function drawSpends({ below, pick }: Random, budgets: readonly Budget[], counters: readonly BudgetCounter[]): Spend[] {
  return Array.from({ length: 1 + below(2) }, () => {
    const at = below(budgets.length)
    const { chainId, token, limit } = budgets[at] as Budget
    const left = BigInt(limit) - (counters[at]?.spent ?? 0n)
    return {
      chainId,
      token,
      amount: pick([0n, 1n, 1n, 2n, left / 2n, left, left, left + 1n, BigInt(limit), 2n ** 256n - 1n]),
    }
  })
}

function toAsset({ chainId, token }: Pick<Spend, 'chainId' | 'token'>): string {
  return `${chainId} ${token}`
}

function toText(value: unknown): string {
  return JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? String(one) : one))
}
