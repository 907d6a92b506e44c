import { emptyManifest } from '@countersign/verify'
import { describe, expect, test } from 'vitest'
import { noTrust } from '../anchors/trust.ts'
import { toCommand, toGateways } from './toCommand.ts'

const contract = { address: `0x${'ab'.repeat(20)}`, chainId: 31337 }
const node = { rpcUrl: 'http://localhost:8545/', chainId: 31337 }

describe('the command', () => {
  const context = {
    trust: { ...noTrust, manifest: { ...emptyManifest, contracts: [contract] }, node },
    anchorSource: 'operator',
  } as const

  test('names the same service and contract', () => {
    const subject = { kind: 'proof', slug: 'q8Zk2vXo1fTn0uYbWcR3dA', apiBaseUrl: 'http://localhost:8080' } as const
    expect(toCommand(subject, context)).toBe(
      `npm run verify -- q8Zk2vXo1fTn0uYbWcR3dA --api http://localhost:8080 --rpc http://localhost:8545/ --contract ${contract.address}`,
    )
  })

  test('includes the visitor’s anchors, never the operator’s', () => {
    const trust = { ...noTrust, manifest: { ...emptyManifest, entropyKeys: ['cd'.repeat(32)] } }
    const subject = { kind: 'files', receipt: '-r.json', collateral: 'c.json', gateway: 'https://g.test' } as const
    expect(toCommand(subject, { ...context, trust })).toBe('npm run verify -- ./-r.json --collateral c.json')
    expect(toCommand({ ...subject, collateral: undefined }, { ...context, trust })).toMatch(
      / --ipfs https:\/\/g\.test$/,
    )
    expect(toCommand(subject, { ...context, trust, anchorSource: 'visitor' })).toMatch(/ --entropy-key (cd){32}$/)
    const [mrTd, zero, ppid] = ['ab'.repeat(48), '00'.repeat(48), 'ef'.repeat(16)] as const
    const enclave = { measurements: [{ mrTd, mrConfigId: zero }], configHashes: [], platforms: [{ ppid }] }
    const code = { ...noTrust, manifest: { ...emptyManifest, enclave } }
    expect(toCommand(subject, { ...context, trust: code, anchorSource: 'visitor' })).toContain(
      ` --measurement ${mrTd}:::::0:: --platform ppid:${ppid}`,
    )
    const log = { ...noTrust, manifest: { ...emptyManifest, log: { witnesses: ['ab', 'cd'], quorum: 2 } } }
    expect(toCommand(subject, { ...context, trust: log, anchorSource: 'visitor' })).toMatch(
      / --witness ab --witness cd --quorum 2$/,
    )
    expect(toCommand(subject, { ...context, trust: log })).not.toContain('witness')
    const logs = [{ id: `0x${'cd'.repeat(32)}` }, { id: `0x${'ef'.repeat(32)}`, upTo: 9 }]
    const logContracts = [{ chainId: 31337, address: contract.address, logs }]
    const anchored = { ...noTrust, manifest: { ...emptyManifest, logContracts } }
    expect(toCommand(subject, { ...context, trust: anchored, anchorSource: 'visitor' })).toMatch(
      / --log-contract 0x(ab){20}:0x(cd){32} --log-contract 0x(ab){20}:0x(ef){32}:9$/,
    )
  })

  test('names the local manifest and allows MOCK for a service on the visitor’s own machine', () => {
    const subject = { kind: 'cid', cid: 'bafkrei', gateway: 'http://localhost:8080' } as const
    const local = { ...context, localManifest: '.countersign/manifest.json' }
    const chain = `--rpc http://localhost:8545/ --contract ${contract.address}`
    const command = `npm run verify -- bafkrei --ipfs http://localhost:8080 ${chain}`
    expect(toCommand(subject, local)).toBe(`${command} --manifest .countersign/manifest.json`)
    const mock = { ...local, trust: { ...context.trust, allowMock: true } }
    expect(toCommand(subject, mock)).toBe(`${command} --manifest .countersign/manifest.json --allow-mock`)
    expect(toCommand(subject, { ...mock, localManifest: "-a b'c" })).toBe(
      `${command} --manifest './-a b'\\''c' --allow-mock`,
    )
    // With the visitor's anchors or without a local manifest, nothing of the operator's is included.
    expect(toCommand(subject, { ...mock, anchorSource: 'visitor' })).not.toMatch(/manifest|mock/)
    expect(toCommand(subject, { ...mock, localManifest: undefined })).toBe(command)
  })

  test('includes the visitor’s values for the coordinator’s machine', () => {
    const coordinator = {
      ...emptyManifest.coordinator,
      measurements: [`${'ab'.repeat(48)}:${'cd'.repeat(32)}`],
      minimumTcb: { Genoa: { bl: 10, snp: 23 } },
      chips: ['ef'.repeat(64)],
    }
    const trust = { ...noTrust, manifest: { ...emptyManifest, coordinator } }
    const subject = { kind: 'cid', cid: 'bafkrei', gateway: 'https://g.test' } as const
    expect(toCommand(subject, { ...context, trust, anchorSource: 'visitor' })).toMatch(
      / --coordinator-measurement (ab){48}:(cd){32} --coordinator-tcb 'Genoa:bl=10,snp=23' --coordinator-chip (ef){64}$/,
    )
  })

  test('is safe to paste, whatever a link or service contains', () => {
    const subject = { kind: 'proof', slug: "x'; rm -rf ~ #$(id)", apiBaseUrl: 'http://a.test/?a&b' } as const
    expect(toCommand(subject, { ...context, trust: noTrust })).toBe(
      `npm run verify -- 'x'\\''; rm -rf ~ #$(id)' --api 'http://a.test/?a&b'`,
    )
  })
})

test('orders gateways: the configured one, the proof’s, then the service, and only http(s)', () => {
  const api = 'http://localhost:8080/'
  expect(toGateways({ apiBaseUrl: api, ipfsUrl: 'https://g.test/path/ipfs/bafkrei' })).toEqual([
    'https://g.test/path',
    'http://localhost:8080',
  ])
  expect(toGateways({ apiBaseUrl: api, ipfsGatewayUrl: 'https://set.test/ipfs/' })).toEqual([
    'https://set.test',
    'http://localhost:8080',
  ])
  for (const ipfsUrl of ['ipfs://bafkrei', 'javascript:alert(1)', 'https://a:b@g.test/ipfs/x', null]) {
    expect(toGateways({ apiBaseUrl: api, ipfsUrl })).toEqual(['http://localhost:8080'])
  }
})
