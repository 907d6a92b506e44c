import { expect, test } from 'vitest'
import { isTestChain, refuseRealChains, testChainIds } from './testNetworks.ts'

test.each([11155111, 17000, 560048, 84532, 11155420, 421614, 31337, 1337, 31337n])('%s is a test network', (id) => {
  expect(isTestChain(id)).toBe(true)
})

test.each([1, 10, 56, 137, 8453, 42161, 0, -1, 1.5, 2n ** 256n, 11155111n + 2n ** 64n])('%s is not', (id) => {
  expect(isTestChain(id)).toBe(false)
})

test('each real chain of a setting is a fault that names those that will do', () => {
  const faults: string[] = []
  refuseRealChains('CHAIN_ID', [31337, 1, 8453], (fault) => faults.push(fault))
  expect(faults).toHaveLength(2)
  expect(faults[0]).toContain(
    `CHAIN_ID: 1 is not one of the test networks that staging may use: ${testChainIds.join(', ')}`,
  )
})
