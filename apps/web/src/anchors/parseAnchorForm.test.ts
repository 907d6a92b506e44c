import { emptyManifest } from '@countersign/verify'
import { describe, expect, test } from 'vitest'
import { parseAnchorForm } from './parseAnchorForm.ts'
import { noTrust, type Trust } from './trust.ts'

const contract = { address: `0x${'ab'.repeat(20)}`, chainId: 31337 }
const node = { rpcUrl: 'http://localhost:8545/', chainId: 31337 }

describe('the visitor’s anchors', () => {
  const empty = {
    measurements: '',
    configHashes: '',
    platforms: '',
    coordinatorMeasurements: '',
    coordinatorConfigHashes: '',
    entropyKeys: '',
    address: '',
    rpcUrl: '',
    chainId: '',
  }
  const operator: Trust = {
    manifest: { ...emptyManifest, entropyKeys: ['ee'.repeat(32)], contracts: [contract] },
    allowMock: true,
    tcbStatuses: ['OutOfDate'],
    node,
  }

  test('replace the operator’s: what is left empty trusts nothing', () => {
    expect(parseAnchorForm(empty, operator).trust).toEqual({ ...noTrust, allowMock: true })
  })

  test('one a line; the node falls back to the operator’s', () => {
    const { trust } = parseAnchorForm(
      { ...empty, entropyKeys: `${'AA'.repeat(32)}\n\n 0x${'bb'.repeat(32)} `, address: `0x${'12'.repeat(20)}` },
      operator,
    )
    expect(trust).toMatchObject({
      manifest: {
        entropyKeys: ['aa'.repeat(32), 'bb'.repeat(32)],
        contracts: [{ ...contract, address: `0x${'12'.repeat(20)}` }],
      },
      node,
    })
  })

  test('each fault is told at its field', () => {
    const { faults } = parseAnchorForm(
      { ...empty, configHashes: `${'aa'.repeat(32)}\nxyz`, address: '0x12', chainId: 'one' },
      operator,
    )
    expect(faults).toEqual({
      configHashes: 'Line 2 is not 32 bytes of hex.',
      address: 'This is not 20 bytes of hex.',
      chainId: 'This is not the number of a chain.',
    })
  })

  test('a contract without any node to ask is a fault', () => {
    expect(parseAnchorForm({ ...empty, address: contract.address }, noTrust).faults).toHaveProperty('rpcUrl')
  })

  test('two or three registers are no measurement; MRTD alone is one', () => {
    const parse = (count: number) =>
      parseAnchorForm({ ...empty, measurements: Array(count).fill('ab'.repeat(48)).join(':') }, operator)
    for (const count of [2, 3, 6, 7, 9]) expect(parse(count).faults).toHaveProperty('measurements')
    for (const count of [1, 4, 5, 8]) expect(parse(count).trust?.manifest.enclave.measurements).toHaveLength(1)
    expect(parseAnchorForm({ ...empty, measurements: 'xy' }, operator).faults).toEqual({
      measurements: 'Line 1 is not 48 bytes of hex.',
    })
  })

  test('a register may be left open or be zero, and a machine says what names it', () => {
    const [mrTd, id] = ['ab'.repeat(48), 'ef'.repeat(16)]
    const fields = { ...empty, measurements: `${mrTd}:::::0::`, platforms: `ppid:${id}\nfmspc:00806F050000` }
    expect(parseAnchorForm(fields, operator).trust?.manifest.enclave).toEqual({
      measurements: [{ mrTd, mrConfigId: '00'.repeat(48) }],
      configHashes: [],
      platforms: [{ ppid: id }, { fmspc: '00806f050000' }],
    })
    expect(parseAnchorForm({ ...empty, platforms: `ppid:${id}\n${id}` }, operator).faults).toEqual({
      platforms: 'Line 2 is not fmspc:HEX of 6 bytes, or ppid:HEX or platformInstanceId:HEX of 16.',
    })
  })

  test.each(['javascript:alert(1)', 'https://a:b@node.example', 'ipfs://x'])('%s is no node', (rpcUrl) => {
    expect(parseAnchorForm({ ...empty, address: contract.address, rpcUrl }, operator).faults).toHaveProperty('rpcUrl')
  })
})
