import { expect, test } from 'vitest'
import { hasAnchors, noTrust, parseHttpUrl, parseTrust, TrustError, toMeasurement } from './trust.ts'

const hex = (bytes: number, digit = 'a') => digit.repeat(2 * bytes)
const contract = { address: `0x${hex(20)}`, chainId: 31337, rpcUrl: 'http://localhost:8545/' }

function faultsOf(value: unknown): string[] {
  try {
    parseTrust(value)
  } catch (error) {
    if (error instanceof TrustError) return error.faults.map(({ member, fault }) => `${member}: ${fault}`)
    throw error
  }
  return []
}

test('what is left out trusts nothing', () => {
  expect(parseTrust(undefined)).toEqual(noTrust)
  expect(parseTrust(null)).toEqual(noTrust)
  expect(parseTrust({})).toEqual(noTrust)
  expect(hasAnchors(noTrust)).toBe(false)
})

test('all that the CLI takes as options is read, and can be read again', () => {
  const trust = parseTrust({
    allowMock: true,
    measurements: [[1, 2, 3, 4, 5].map((digit) => hex(48, String(digit))).join(':')],
    configHashes: [hex(32)],
    coordinatorMeasurements: [hex(48)],
    coordinatorConfigHashes: [hex(32)],
    entropyKeys: [hex(32)],
    tcbStatuses: ['OutOfDate'],
    contract: { ...contract, fromBlock: 7 },
  })
  expect(trust.contract).toEqual({ ...contract, fromBlock: 7 })
  expect(toMeasurement(trust.measurements[0] ?? '')).toEqual({
    mrTd: hex(48, '1'),
    rtmr0: hex(48, '2'),
    rtmr1: hex(48, '3'),
    rtmr2: hex(48, '4'),
    rtmr3: hex(48, '5'),
  })
  expect(parseTrust(trust)).toEqual(trust)
  expect(hasAnchors(trust)).toBe(true)
})

test('hex is taken in either case, with and without 0x, and kept in one spelling', () => {
  expect(parseTrust({ entropyKeys: [`0x${hex(32, 'A')}`] }).entropyKeys).toEqual([hex(32)])
  expect(parseTrust({ contract: { ...contract, address: hex(20, 'A') } }).contract?.address).toBe(`0x${hex(20)}`)
})

test.each<[string, unknown, string[]]>([
  ['a list in place of the object', [], ['trust: not an object']],
  ['a text', 'all', ['trust: not an object']],
  ['a misspelt member', { entropyKey: [] }, ['entropyKey: unknown member']],
  [
    'a member of the prototype',
    JSON.parse('{"__proto__":1,"toString":2}'),
    ['__proto__: unknown member', 'toString: unknown member'],
  ],
  ['mock as a text', { allowMock: 'true' }, ['allowMock: not true or false']],
  ['one key outside of a list', { entropyKeys: hex(32) }, ['entropyKeys: not a list']],
  ['a key too short', { entropyKeys: [hex(31)] }, ['entropyKeys[0]: not 32 bytes of hex']],
  ['a key that is a number', { entropyKeys: [5] }, ['entropyKeys[0]: not 32 bytes of hex']],
  ['hex with a stranger in it', { configHashes: [hex(32), `${hex(31)}zz`] }, ['configHashes[1]: not 32 bytes of hex']],
  ['an unknown status', { tcbStatuses: ['Fine'] }, ['tcbStatuses[0]: not a TCB status of Intel']],
  [
    'no contract address',
    { contract: { chainId: 1, rpcUrl: contract.rpcUrl } },
    ['contract.address: not 20 bytes of hex'],
  ],
  ['a chain 0', { contract: { ...contract, chainId: 0 } }, ['contract.chainId: not the number of a chain']],
  [
    'a script for a node',
    { contract: { ...contract, rpcUrl: 'javascript:alert(1)' } },
    ['contract.rpcUrl: not an http or https URL without credentials'],
  ],
  ['a negative block', { contract: { ...contract, fromBlock: -1 } }, ['contract.fromBlock: not the number of a block']],
  ['a misspelt member of the contract', { contract: { ...contract, from: 1 } }, ['contract.from: unknown member']],
])('%s is refused', (_name, value, faults) => {
  expect(faultsOf(value)).toEqual(faults)
})

test('two or three registers are no measurement; MRTD alone is one', () => {
  for (const count of [2, 3, 6]) {
    expect(faultsOf({ measurements: [Array(count).fill(hex(48)).join(':')] })).toHaveLength(1)
  }
  for (const count of [1, 4, 5]) {
    expect(faultsOf({ measurements: [Array(count).fill(hex(48)).join(':')] })).toEqual([])
  }
})

test('every fault is told at once', () => {
  expect(faultsOf({ allowMock: 1, entropyKeys: ['x', 'y'], other: 1 })).toHaveLength(4)
})

test('only http and https without credentials are addresses to ask', () => {
  expect(parseHttpUrl('https://node.example/key')).toBe('https://node.example/key')
  for (const bad of ['ipfs://x', 'https://a:b@node.example', '//node.example', 'data:,x', 7, undefined]) {
    expect(parseHttpUrl(bad)).toBeUndefined()
  }
})
