import { expect, test } from 'vitest'
import gas from './gas.json' with { type: 'json' }
import { type GasFigures, measureGas } from './measureGas.ts'

test('publishing costs exactly the gas in gas.json', async () => {
  expect(await measureGas()).toEqual(gas)
})

test('a proof in a batch of 100 costs at most 30 % of a single one', () => {
  const { publish, publishBatch }: GasFigures = gas
  expect((publishBatch['100']?.total ?? Number.NaN) / 100 / publish).toBeLessThanOrEqual(0.3)
})
