import type { Platform } from '@countersign/evidence'
import { expect, test } from 'vitest'
import { at, simulator } from '../../test/peers.ts'
import { createCollateralSource } from './collateralSource.ts'

const quote = simulator.quote({ reportData: new Uint8Array(64) })

test('fetches collateral for the quote’s own platform, and again after an hour', async () => {
  let now = at.getTime()
  const asked: Platform[] = []
  const fetchCollateral = createCollateralSource({
    clock: { now: () => now },
    async fetch(platform) {
      asked.push(platform)
      return simulator.collateral()
    },
  })
  await fetchCollateral(quote)
  await fetchCollateral(quote)
  expect(asked).toEqual([{ fmspc: 'f0c06f000000', ca: 'platform' }])
  now += 3_600_000
  await fetchCollateral(quote)
  expect(asked).toHaveLength(2)
})

test('retries a failing source immediately', async () => {
  let calls = 0
  const fetchCollateral = createCollateralSource({
    clock: { now: () => at.getTime() },
    async fetch() {
      calls += 1
      if (calls === 1) throw new Error('down')
      return simulator.collateral()
    },
  })
  await expect(fetchCollateral(quote)).rejects.toThrow('down')
  await expect(fetchCollateral(quote)).resolves.toHaveProperty('tcb_info')
})
