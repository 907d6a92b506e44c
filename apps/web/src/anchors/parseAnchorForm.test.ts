import { emptyManifest } from '@countersign/verify'
import { describe, expect, test } from 'vitest'
import { parseAnchorForm } from './parseAnchorForm.ts'
import { noTrust, type Trust } from './trust.ts'

const contract = { address: `0x${'ab'.repeat(20)}`, chainId: 31337 }
const node = { rpcUrl: 'http://localhost:8545/', chainId: 31337 }

describe('a visitor’s anchors', () => {
  const empty = {
    measurements: '',
    configHashes: '',
    platforms: '',
    coordinatorMeasurements: '',
    coordinatorConfigHashes: '',
    coordinatorTcb: '',
    coordinatorChips: '',
    entropyKeys: '',
    witnesses: '',
    quorum: '',
    address: '',
    logContracts: '',
    rpcUrl: '',
    chainId: '',
  }
  const operator: Trust = {
    manifest: { ...emptyManifest, entropyKeys: ['ee'.repeat(32)], contracts: [contract] },
    allowMock: true,
    tcbStatuses: ['OutOfDate'],
    node,
  }

  test('replace the operator’s anchors, so empty fields trust nothing', () => {
    expect(parseAnchorForm(empty, operator).trust).toEqual({ ...noTrust, allowMock: true })
  })

  test('are entered one per line, and the node defaults to the operator’s', () => {
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

  test('include the coordinator’s code, TCB and chips', () => {
    const { trust, faults } = parseAnchorForm(
      {
        ...empty,
        coordinatorMeasurements: `0x${'AB'.repeat(48)}:0x${'CD'.repeat(32)}\n${'ef'.repeat(48)}`,
        coordinatorTcb: 'Genoa:bl=10,snp=23\nTurin:fmc=1',
        coordinatorChips: `0x${'AA'.repeat(64)}`,
      },
      operator,
    )
    expect(faults).toBeUndefined()
    expect(trust?.manifest.coordinator).toEqual({
      measurements: [`${'ab'.repeat(48)}:${'cd'.repeat(32)}`, 'ef'.repeat(48)],
      configHashes: [],
      minimumTcb: { Genoa: { bl: 10, snp: 23 }, Turin: { fmc: 1 } },
      chips: ['aa'.repeat(64)],
    })
  })

  test('reports errors in the coordinator’s code, TCB and chips at their fields', () => {
    const { faults } = parseAnchorForm(
      {
        ...empty,
        coordinatorMeasurements: `${'ab'.repeat(48)}:`,
        coordinatorTcb: 'Genoa',
        coordinatorChips: `${'aa'.repeat(64)}\n${'aa'.repeat(8)}`,
      },
      operator,
    )
    expect(faults).toEqual({
      coordinatorMeasurements: 'Line 1 is not 48 bytes of hex, with or without : and the 32 bytes of HOST_DATA.',
      coordinatorTcb: expect.stringMatching(/^Expected PRODUCT:PART=LEVEL/),
      coordinatorChips: 'Line 2 is not 64 bytes of hex.',
    })
  })

  test('accept witness keys in hex or as verifier keys, and a quorum', () => {
    // RFC 8032 §7.1.
    const hex = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
    const other = '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'
    const stated = 'w.example+4a98ebc3+BNdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea'
    const { trust } = parseAnchorForm({ ...empty, witnesses: `${stated}\n0x${other}`, quorum: ' 2' }, operator)
    expect(trust?.manifest.log).toEqual({ witnesses: [hex, other], quorum: 2 })
    for (const [fields, field] of [
      [{ witnesses: hex, quorum: '' }, 'quorum'],
      [{ witnesses: '', quorum: '1' }, 'quorum'],
      [{ witnesses: `${hex}\n${other}`, quorum: '1' }, 'quorum'],
      [{ witnesses: hex, quorum: 'all' }, 'quorum'],
      [{ witnesses: `${hex}\nw.example`, quorum: '2' }, 'witnesses'],
    ] as const) {
      const { trust: none, faults } = parseAnchorForm({ ...empty, ...fields }, operator)
      expect([none, Object.keys(faults ?? {})[0]]).toEqual([undefined, field])
    }
  })

  test('include logs on the chain of the contract, each with its last size', () => {
    const [address, a, b] = [`0x${'12'.repeat(20)}`, `0x${'aa'.repeat(32)}`, `0x${'bb'.repeat(32)}`]
    const logContracts = `${address}:${a}\n\n ${address.slice(2)}:${b.toUpperCase().replace('X', 'x')}:90000 `
    const { trust, faults } = parseAnchorForm(
      { ...empty, address: contract.address, chainId: '5', logContracts },
      operator,
    )
    expect(faults).toBeUndefined()
    expect(trust?.manifest.logContracts).toEqual([{ chainId: 5, address, logs: [{ id: a }, { id: b, upTo: 90_000 }] }])
    const { trust: none } = parseAnchorForm({ ...empty, address: contract.address }, operator)
    expect(none?.manifest).not.toHaveProperty('logContracts')
  })

  test('shows errors in logs on the chain at their field', () => {
    const log = `0x${'12'.repeat(20)}:0x${'aa'.repeat(32)}`
    const parse = (logContracts: string) =>
      parseAnchorForm({ ...empty, address: contract.address, logContracts }, operator).faults
    for (const line of [`${log}:`, `${log}:0`, `${log}:all`, log.slice(0, 42), log.slice(0, -1)]) {
      expect(parse(`${log}\n${line}`)).toEqual({ logContracts: expect.stringMatching(/^Line 2: expected CONTRACT:ID/) })
    }
    expect(parse(`${log}\n${log.replace('12', '13')}`)).toEqual({
      logContracts: 'Enter logs of only one contract.',
    })
    expect(parseAnchorForm({ ...empty, logContracts: log }, operator).faults).toEqual({
      address: 'Required with logs on the chain.',
    })
  })

  test('shows each error at its field', () => {
    const { faults } = parseAnchorForm(
      { ...empty, configHashes: `${'aa'.repeat(32)}\nxyz`, address: '0x12', chainId: 'one' },
      operator,
    )
    expect(faults).toEqual({
      configHashes: 'Line 2 is not 32 bytes of hex.',
      address: 'This is not 20 bytes of hex.',
      chainId: 'Enter a chain ID, such as 1.',
    })
  })

  test.each([
    ['with its checksum', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', undefined],
    ['without 0x', '70997970C51812dc3A010C7d01b50e0d17dc79C8', undefined],
    ['with a wrong checksum', '0x70997970C51812dc3A010C7d01b50e0d17dc79c8', ['address']],
  ])('a contract %s', (_, address, fields) => {
    const { trust, faults } = parseAnchorForm({ ...empty, address }, operator)
    expect(faults && Object.keys(faults)).toEqual(fields)
    if (trust) expect(trust.manifest.contracts).toMatchObject([{ address: `0x${address.slice(-40).toLowerCase()}` }])
  })

  test('rejects a contract without a node', () => {
    expect(parseAnchorForm({ ...empty, address: contract.address }, noTrust).faults).toHaveProperty('rpcUrl')
  })

  test('rejects a measurement of two or three registers and accepts MRTD only', () => {
    const parse = (count: number) =>
      parseAnchorForm({ ...empty, measurements: Array(count).fill('ab'.repeat(48)).join(':') }, operator)
    for (const count of [2, 3, 6, 7, 9]) expect(parse(count).faults).toHaveProperty('measurements')
    for (const count of [1, 4, 5, 8]) expect(parse(count).trust?.manifest.enclave.measurements).toHaveLength(1)
    expect(parseAnchorForm({ ...empty, measurements: 'xy' }, operator).faults).toEqual({
      measurements: 'Line 1 is not 48 bytes of hex.',
    })
  })

  test('accepts empty and zero registers, and each kind of platform ID', () => {
    const [mrTd, id] = ['ab'.repeat(48), 'ef'.repeat(16)]
    const fields = { ...empty, measurements: `${mrTd}:::::0::`, platforms: `ppid:${id}\nfmspc:00806F050000` }
    expect(parseAnchorForm(fields, operator).trust?.manifest.enclave).toEqual({
      measurements: [{ mrTd, mrConfigId: '00'.repeat(48) }],
      configHashes: [],
      platforms: [{ ppid: id }, { fmspc: '00806f050000' }],
    })
    expect(parseAnchorForm({ ...empty, platforms: `ppid:${id}\n${id}` }, operator).faults).toEqual({
      platforms: 'Line 2: expected fmspc:HEX of 6 bytes, or ppid:HEX or platformInstanceId:HEX of 16.',
    })
  })

  test.each(['javascript:alert(1)', 'https://a:b@node.example', 'ipfs://x'])('rejects the node %s', (rpcUrl) => {
    expect(parseAnchorForm({ ...empty, address: contract.address, rpcUrl }, operator).faults).toHaveProperty('rpcUrl')
  })
})
