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

const { register, firstAdvance, advance, perProof }: GasFigures['logWitness'] = gas.logWitness

test('registering a log and its first advance cost at most 125,000 gas', () => {
  expect(register + firstAdvance).toBeLessThanOrEqual(125_000)
})

test('a later advance costs at most 90,000 gas up to 2^40 entries, and typically below 65,000 at 2^30', () => {
  expect(Object.keys(advance)).toEqual(['2', '2^10', '2^20', '2^30', '2^40'])
  for (const { highest, typical = highest } of Object.values(advance)) {
    expect(highest).toBeLessThanOrEqual(90_000)
    expect(typical).toBeLessThanOrEqual(highest)
  }
  expect(advance['2^30']?.typical).toBeLessThan(65_000)
})

test('a proof costs at most 650 gas at 140 per advance, and 20 at 6,000', () => {
  expect(perProof['140']).toBeLessThanOrEqual(650)
  expect(perProof['6000']).toBeLessThanOrEqual(20)
})
