import { expect, test } from 'vitest'
import { bumpFees } from '../confirm.ts'

const fees = (maxFeePerGas: bigint, maxPriorityFeePerGas: bigint) => ({ maxFeePerGas, maxPriorityFeePerGas })
const nothing = fees(0n, 0n)

test.each([
  ['an eighth more of both', fees(800n, 80n), nothing, fees(900n, 90n)],
  ['rounded up', fees(801n, 81n), nothing, fees(902n, 92n)],
  ['one wei at least', fees(1n, 0n), nothing, fees(2n, 1n)],
  ['never below the market', fees(800n, 80n), fees(2000n, 200n), fees(2000n, 200n)],
  ['each of the two for itself', fees(800n, 80n), fees(100n, 200n), fees(900n, 200n)],
  ['the cap never below the tip', fees(100n, 100n), fees(100n, 5000n), fees(5000n, 5000n)],
  ['beyond what a number holds', fees(2n ** 80n, 8n), nothing, fees((2n ** 80n * 9n) / 8n, 9n)],
])('%s', (_name, before, market, after) => {
  expect(bumpFees(before, market)).toEqual(after)
})

test('raises both fees by 12.5 %, rounded up by at most one wei', () => {
  for (let fee = 0n; fee < 1000n; fee += 1n) {
    const { maxFeePerGas, maxPriorityFeePerGas } = bumpFees(fees(fee, fee / 2n), nothing)
    for (const [before, after] of [
      [fee, maxFeePerGas],
      [fee / 2n, maxPriorityFeePerGas],
    ] as const) {
      expect(after * 1000n).toBeGreaterThanOrEqual(before * 1125n)
      expect(after).toBeGreaterThan(before)
      expect((after - 1n) * 1000n).toBeLessThanOrEqual(before * 1125n)
    }
  }
})
