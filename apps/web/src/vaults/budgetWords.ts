import type { Budget } from '@countersign/policy'
import { formatUnits } from 'viem'
import type { Token } from '../config.ts'
import { toCoin, toShortAddress, toShortAmount } from '../words/format.ts'

const PERIODS: readonly [number, string][] = [
  [604_800, 'week'],
  [86_400, 'day'],
  [3_600, 'hour'],
  [1, 'second'],
]

/** "10 USDC per day". Exact, without a token's decimals in its smallest unit. */
export function describeLimit(budget: Budget, tokens: readonly Token[]): string {
  const { decimals, symbol } = findAsset(budget, tokens)
  return `${formatUnits(BigInt(budget.limit), decimals)} ${symbol} ${toPeriod(budget.periodS)}`
}

/** "4.5 USDC". */
export function describeAmount(amount: bigint, budget: Budget, tokens: readonly Token[]): string {
  const { decimals, symbol } = findAsset(budget, tokens)
  return `${toShortAmount(amount, decimals)} ${symbol}`
}

function findAsset({ chainId, token }: Budget, tokens: readonly Token[]): Pick<Token, 'decimals' | 'symbol'> {
  if (token === null) return { decimals: 18, symbol: toCoin({ chainId }) }
  const known = tokens.find((one) => one.chainId === chainId && one.address === token)
  return known ?? { decimals: 0, symbol: `units of the token ${toShortAddress(token)}` }
}

function toPeriod(periodS: number): string {
  if (periodS === 0) return 'in total'
  const [length, name] = PERIODS.find(([one]) => periodS % one === 0) as [number, string]
  const count = periodS / length
  return count === 1 ? `per ${name}` : `per ${count} ${name}s`
}

/** "20 November 2026 at 00:00 UTC". */
export function toUtc(timeS: number): string {
  const style = { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' } as const
  return `${new Intl.DateTimeFormat('en-GB', style).format(new Date(timeS * 1000))} UTC`
}

/** How far the witnesses can be trusted, for the people who create a vault with a budget. */
export function describeWitnesses({ witnesses: { length }, quorum }: { witnesses: readonly string[]; quorum: number }) {
  const liars = 2 * quorum - length - 1
  if (liars === 0) return `The budget assumes that none of the ${length} witnesses lies.`
  return `The budget holds even if ${liars === 1 ? 'one' : liars} of the ${length} witnesses ${liars === 1 ? 'lies' : 'lie'}.`
}
