import { expect, test } from 'vitest'
import { refuseRealChains, testChainIds } from './testNetworks.ts'

function toFaults(chainIds: number[]): string[] {
  const faults: string[] = []
  refuseRealChains('CHAIN_ID', chainIds, (setting, problem) => void faults.push(`${setting}: ${problem}`))
  return faults
}

test.each([11155111, 17000, 560048, 84532, 11155420, 421614, 31337, 1337])('%s is a test network', (id) => {
  expect(toFaults([id])).toEqual([])
})

test.each([1, 10, 56, 137, 8453, 42161, 0, -1, 1.5])('%s is not a test network', (id) => {
  expect(toFaults([id])).toHaveLength(1)
})

test('each real chain in a setting is a fault that lists the allowed ones', () => {
  const faults = toFaults([31337, 1, 8453])
  expect(faults).toHaveLength(2)
  expect(faults[0]).toContain(`CHAIN_ID: expected a test network in staging (${testChainIds.join(', ')}), got 1`)
})
