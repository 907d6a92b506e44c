import { emptyManifest } from '@countersign/verify'
import { expect, test } from 'vitest'
import { findContract, hasAnchors, noTrust, readOperatorTrust } from './trust.ts'

const hex = (bytes: number, digit = 'a') => digit.repeat(2 * bytes)
const site = { apiBaseUrl: 'https://api.test', chainId: 31337 }
const attestations = { address: `0x${hex(20, 'A')}`, chainId: 31337, rpcUrl: 'http://localhost:8545/' }
const manifest = {
  ...emptyManifest,
  enclave: {
    measurements: [{ mrTd: hex(48) }],
    configHashes: [hex(32)],
    events: { 'compose-hash': [hex(32)] },
    minimumTcbEvaluationDataNumber: 17,
  },
  coordinator: { measurements: [hex(48)], configHashes: [hex(32)], minimumTcb: { Milan: { bl: 4 } } },
  entropyKeys: [hex(32)],
}

test('trusts nothing by default', () => {
  expect(readOperatorTrust(site)).toEqual({ trust: noTrust, fault: undefined })
  expect(hasAnchors(noTrust)).toBe(false)
})

test('reads a manifest in the command line’s format', () => {
  const config = { ...site, trust: manifest, allowMock: true, tcbStatuses: ['OutOfDate'] }
  const { trust, fault } = readOperatorTrust(config)
  expect(fault).toBeUndefined()
  expect(trust).toEqual({ manifest, allowMock: true, tcbStatuses: ['OutOfDate'], node: undefined })
  expect(hasAnchors(trust)).toBe(true)
})

test('adds the contract and node from attestations unless the manifest has a contract on that chain', () => {
  const { trust } = readOperatorTrust({ ...site, attestations })
  expect(trust.node).toEqual({ rpcUrl: attestations.rpcUrl, chainId: 31337 })
  expect(findContract(trust)).toEqual({ chainId: 31337, address: `0x${hex(20)}` })
  const own = { chainId: 31337, address: `0x${hex(20, 'b')}`, fromBlock: 7 }
  const named = readOperatorTrust({ ...site, attestations, trust: { ...manifest, contracts: [own] } }).trust
  expect(findContract(named)).toEqual(own)
  expect(findContract(noTrust)).toBeUndefined()
})

test('reads fromBlock from attestations', () => {
  const { trust } = readOperatorTrust({ ...site, attestations: { ...attestations, fromBlock: 7 } })
  expect(findContract(trust)).toEqual({ chainId: 31337, address: `0x${hex(20)}`, fromBlock: 7 })
})

test.each<[string, object, string]>([
  ['a list in place of the manifest', { trust: [] }, 'manifest: not an object'],
  ['a text', { trust: 'all' }, 'manifest: not an object'],
  ['null', { trust: null }, 'manifest: not an object'],
  ['a misspelt member', { trust: { ...manifest, entropyKey: [] } }, 'entropyKey: unknown member'],
  ['a member of the prototype', { trust: { ...manifest, toString: 2 } }, 'toString: unknown member'],
  ['one key outside of a list', { trust: { ...manifest, entropyKeys: hex(32) } }, 'entropyKeys: not a list'],
  ['a key too short', { trust: { ...manifest, entropyKeys: [hex(31)] } }, 'entropyKeys[0]: not 32 or 96 bytes'],
  ['a key that is a number', { trust: { ...manifest, entropyKeys: [5] } }, 'entropyKeys[0]: not 32 or 96 bytes'],
  ['upper case', { trust: { ...manifest, entropyKeys: [hex(32, 'A')] } }, 'entropyKeys[0]: not 32 or 96 bytes'],
  ['mock as a text', { allowMock: 'true' }, 'allowMock: expected true or false'],
  ['an unknown status', { tcbStatuses: ['Fine'] }, 'tcbStatuses: unknown TCB status'],
  ['a status outside of a list', { tcbStatuses: 'OutOfDate' }, 'tcbStatuses: expected a list'],
  [
    'a misspelt member of attestations',
    { attestations: { ...attestations, fromBlok: 7 } },
    'attestations.fromBlok: unknown member',
  ],
  [
    'a block that is no number',
    { attestations: { ...attestations, fromBlock: '7' } },
    'attestations.fromBlock: not a natural number',
  ],
  [
    'a node with credentials',
    { attestations: { ...attestations, rpcUrl: 'https://a:b@node.example' } },
    'attestations.rpcUrl: expected an http or https URL without credentials',
  ],
])('trusts nothing with %s, and reports the error', (_name, change, words) => {
  const { trust, fault } = readOperatorTrust({ ...site, ...change })
  expect(trust).toEqual(noTrust)
  expect(fault).toContain(words)
})

test('reports every error at once', () => {
  const trust = { ...manifest, entropyKeys: ['x', 'y'], other: 1 }
  expect(readOperatorTrust({ ...site, trust, allowMock: 1 }).fault?.split('; ')).toHaveLength(4)
})
