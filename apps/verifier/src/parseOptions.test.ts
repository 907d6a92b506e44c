import { isSlug } from '@countersign/protocol'
import { emptyManifest } from '@countersign/verify'
import { describe, expect, test } from 'vitest'
import { withCode } from '../../../packages/verify/test/withCode.ts'
import { HELP } from './help.ts'
import { parseOptions } from './parseOptions.ts'

const clock = { now: () => new Date('2027-01-02T03:04:05.678Z') }
const parse = (...argv: string[]) => parseOptions(clock, argv)

/** RFC 8032 §7.1. */
const WITNESSES = [
  'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
] as const

const CONTRACT = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

describe('the command line', () => {
  test('accepts the command line without verify', () => {
    expect(parse('receipt.json')).toEqual(parse('verify', 'receipt.json'))
    expect(parse('receipt.json')).toMatchObject({ command: 'verify', subject: 'receipt.json' })
    expect(parse('explain', 'quote.bin')).toEqual({ command: 'explain', file: 'quote.bin' })
  })

  test('trusts and asks nothing by default', () => {
    expect(parse('receipt.json')).toEqual({
      command: 'verify',
      subject: 'receipt.json',
      api: undefined,
      gateways: [],
      rpc: undefined,
      contract: undefined,
      logContracts: [],
      collateralFiles: [],
      at: undefined,
      revocationsFile: undefined,
      statuses: [],
      maximumEventDelayS: undefined,
      manifestFile: undefined,
      anchors: emptyManifest,
      isMockAllowed: false,
      isMissingEventAllowed: false,
      isOffline: false,
    })
  })

  test('reads witnesses and their quorum', () => {
    const flags = WITNESSES.flatMap((key) => ['--witness', key.toUpperCase()])
    const log = { witnesses: WITNESSES, quorum: 2 }
    expect(parse('r', ...flags, '--quorum', '2')).toMatchObject({ anchors: { log } })
  })

  test('reads logs on the chain with and without a last size', () => {
    const [address, id] = [CONTRACT.toLowerCase(), `0x${'ab'.repeat(32)}`]
    const logs = [`${CONTRACT}:${id}`, `${CONTRACT}:${'CD'.repeat(32)}:90000`]
    expect(parse('r', '--rpc', 'http://a', ...logs.flatMap((text) => ['--log-contract', text]))).toMatchObject({
      logContracts: [
        { address, logs: [{ id }] },
        { address, logs: [{ id: `0x${'cd'.repeat(32)}`, upTo: 90_000 }] },
      ],
    })
  })

  test.each([0, 60, 9_999_999_999])('accepts an event %d seconds later', (seconds) => {
    const options = parse('r', '--rpc', 'http://127.0.0.1', '--maximum-event-delay', String(seconds))
    expect(options).toMatchObject({ maximumEventDelayS: seconds })
  })

  test('reads a coordinator’s code with HOST_DATA, TCB and chips', () => {
    const measurement = 'AB'.repeat(48)
    const hostData = `0x${'CD'.repeat(32)}`
    const machine = ['--coordinator-tcb', 'Genoa:bl=10,snp=23', '--coordinator-chip', 'EF'.repeat(64)]
    const code = ['--coordinator-measurement', `${measurement}:${hostData}`, '--coordinator-measurement', measurement]
    expect(parse('r', ...code, ...machine, '--revocations', 'crl.der')).toMatchObject({
      revocationsFile: 'crl.der',
      anchors: {
        coordinator: {
          measurements: [`${'ab'.repeat(48)}:${'cd'.repeat(32)}`, 'ab'.repeat(48)],
          minimumTcb: { Genoa: { bl: 10, snp: 23 } },
          chips: ['ef'.repeat(64)],
        },
      },
    })
  })

  test.each(['-8Zk2vXo1fTn0uYbWcR3dA', '--Zk2vXo1fTn0uYbWcR3dA'])(
    'accepts a slug that starts with a hyphen: %s',
    (slug) => {
      expect(parse('verify', slug, '--api', 'http://127.0.0.1')).toMatchObject({ subject: slug })
      expect(parse(slug, '--api', 'http://127.0.0.1')).toMatchObject({ subject: slug })
      expect(parse('--', slug)).toMatchObject({ subject: slug })
    },
  )

  test('has no option that looks like a slug', () => {
    const options = [...HELP.matchAll(/--[a-z-]+/g)].map(([option]) => option)
    expect(options).toContain('--allow-missing-event')
    expect(options.filter(isSlug)).toEqual([])
  })

  test('accepts hex in either case, with or without prefix', () => {
    const options = parse('r', '--measurement', `0x${'AB'.repeat(48)}`, '--measurement', 'cd'.repeat(48))
    expect(options).toMatchObject({
      anchors: { enclave: { measurements: [{ mrTd: 'ab'.repeat(48) }, { mrTd: 'cd'.repeat(48) }] } },
    })
    expect(parse('r', '--rpc', 'http://a', '--contract', CONTRACT)).toMatchObject({ contract: CONTRACT.toLowerCase() })
    expect(parse('r', '--rpc', 'http://127.0.0.1/?key=1', '--contract', 'AB'.repeat(20))).toMatchObject({
      rpc: 'http://127.0.0.1/?key=1',
      contract: `0x${'ab'.repeat(20)}`,
    })
  })

  test('accepts a measurement with all registers, or in the older formats with MRTD, three or four RTMRs', () => {
    const [mrTd, rtmr0, rtmr1, rtmr2, rtmr3] = ['a0', 'b0', 'b1', 'b2', 'b3'].map((byte) => byte.repeat(48))
    const read = (...parts: (string | undefined)[]) => parse('r', '--measurement', parts.join(':'))
    expect(read(mrTd)).toMatchObject({ anchors: { enclave: { measurements: [{ mrTd }] } } })
    expect(read(mrTd, rtmr0, rtmr1, rtmr2)).toMatchObject({
      anchors: { enclave: { measurements: [{ mrTd, rtmr0, rtmr1, rtmr2 }] } },
    })
    expect(read(mrTd, rtmr0, rtmr1, rtmr2, rtmr3)).toMatchObject({
      anchors: { enclave: { measurements: [{ mrTd, rtmr0, rtmr1, rtmr2, rtmr3 }] } },
    })
    expect(read(mrTd, `0x${'B0'.repeat(48)}`, rtmr1, rtmr2)).toMatchObject({
      anchors: { enclave: { measurements: [{ rtmr0 }] } },
    })
    const [mrConfigId, zero] = ['c0', '00'].map((byte) => byte.repeat(48))
    expect(read(mrTd, rtmr0, rtmr1, rtmr2, '', mrConfigId, '0', '0')).toMatchObject({
      anchors: {
        enclave: { measurements: [{ mrTd, rtmr0, rtmr1, rtmr2, mrConfigId, mrOwner: zero, mrOwnerConfig: zero }] },
      },
    })
  })

  test('accepts each kind of platform ID', () => {
    const ppid = 'ab'.repeat(16)
    expect(parse('r', '--platform', 'fmspc:00806F050000', '--platform', `ppid:${ppid}`)).toMatchObject({
      anchors: { enclave: { platforms: [{ fmspc: '00806f050000' }, { ppid }] } },
    })
    expect(() => parse('r', '--platform', ppid)).toThrow(/^invalid --platform/)
  })

  test.each<[string, string]>([
    ['an empty register', ''],
    ['a short one', 'ab'.repeat(47)],
    ['one that is no hex', 'xy'.repeat(48)],
    ['one with a space', ` ${'ab'.repeat(48)}`],
  ])('rejects a measurement with %s', (_, register) => {
    const hex = 'ab'.repeat(48)
    for (const parts of [
      [register, hex, hex, hex, hex],
      [hex, hex, hex, register],
      [hex, hex, hex, hex, register],
      [register, hex, hex, hex, hex, hex, hex, hex],
    ]) {
      expect(() => parse('r', '--measurement', parts.join(':'))).toThrow(/^--measurement expects /)
    }
  })

  test('removes trailing slashes from URLs', () => {
    const options = parse('r', '--api', 'https://wallet.example/api//', '--ipfs', 'http://127.0.0.1:8080/ipfs/')
    expect(options).toMatchObject({ api: 'https://wallet.example/api', gateways: ['http://127.0.0.1:8080/ipfs'] })
  })

  test.each([
    ['now', '2027-01-02T03:04:05.678Z'],
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-01-31T12:30Z', '2026-01-31T12:30:00.000Z'],
    ['2026-01-31T12:30:15Z', '2026-01-31T12:30:15.000Z'],
    ['2026-01-31T12:30:15.250Z', '2026-01-31T12:30:15.250Z'],
  ])('reads --at %s as %s', (text, time) => {
    expect(parse('r', '--collateral', 'c', '--at', text)).toMatchObject({ at: new Date(time) })
  })

  test('accepts help and version without other arguments', () => {
    expect(parse('-h')).toEqual({ command: 'help' })
    expect(parse('--help')).toEqual({ command: 'help' })
    expect(parse('--version')).toEqual({ command: 'version' })
  })

  test.each<[string[]]>([
    [['verify', '--help']],
    [['verify', '-h']],
    [['verify', '--version']],
    [['explain', '--help']],
    [['receipt.json', '--version']],
    [['--help', '--version']],
    [['--help', '--json']],
    [['--help', '--']],
    [['-8Zk2vXo1fTn0uYbWcR3dA', '--help']],
  ])('rejects help among other arguments: %j', (argv) => {
    expect(parse(...argv)).toEqual({ command: 'misplaced-help' })
  })

  test('treats words after -- as names', () => {
    expect(parse('verify', '--', '--help')).toMatchObject({ command: 'verify', subject: '--help' })
  })

  test.each<[string, string[], string]>([
    ['nothing', [], ''],
    ['a command alone', ['verify'], ''],
    ['two receipts', ['a', 'b'], 'a and b'],
    ['an unknown option', ['r', '--frobnicate'], 'see --help'],
    ['an option without its value', ['r', '--api'], 'see --help'],
    ['a value for a switch', ['r', '--offline=yes'], 'see --help'],
    ['an option twice', ['r', '--api', 'http://a', '--api', 'http://b'], '--api'],
    ['a delay that is no number', ['r', '--rpc', 'http://a', '--maximum-event-delay', '72h'], '72h'],
    ['a delay below nothing', ['r', '--rpc', 'http://a', '--maximum-event-delay=-1'], '-1'],
    ['a delay with a fraction', ['r', '--rpc', 'http://a', '--maximum-event-delay', '1.5'], '1.5'],
    ['a delay without end', ['r', '--rpc', 'http://a', '--maximum-event-delay', 'Infinity'], 'Infinity'],
    ['an empty delay', ['r', '--rpc', 'http://a', '--maximum-event-delay', ''], ''],
    ['a delay without a chain', ['r', '--maximum-event-delay', '60'], 'name a node with --rpc'],
    ['hex that is none', ['r', '--measurement', 'xyz'], 'xyz'],
    ['an MRTD of 47 bytes', ['r', '--measurement', 'ab'.repeat(47)], '94 digits'],
    ['an empty hash', ['r', '--config-hash', ''], '0 digits'],
    ['a coordinator measurement of 32 bytes', ['r', '--coordinator-measurement', 'ab'.repeat(32)], '64 digits'],
    ['HOST_DATA of 48 bytes', ['r', '--coordinator-measurement', `${'ab'.repeat(48)}:${'ab'.repeat(48)}`], '96 digits'],
    ['an empty HOST_DATA', ['r', '--coordinator-measurement', `${'ab'.repeat(48)}:`], '0 digits'],
    ['HOST_DATA twice', ['r', '--coordinator-measurement', ['ab'.repeat(48), 'ab', 'ab'].join(':')], 'HOST_DATA'],
    ['patch levels without a product', ['r', '--coordinator-tcb', 'bl=4'], 'bl=4'],
    ['a product without patch levels', ['r', '--coordinator-tcb', 'Milan'], 'Milan'],
    ['a product twice', ['r', '--coordinator-tcb', 'Milan:bl=4', '--coordinator-tcb', 'Milan:bl=5'], 'Milan:bl=5'],
    ['a chip of 8 bytes', ['r', '--coordinator-chip', 'ab'.repeat(8)], '16 digits'],
    ['a coordinator hash of 48 bytes', ['r', '--coordinator-config-hash', 'ab'.repeat(48)], '96 digits'],
    ['a key of 33 bytes', ['r', '--entropy-key', 'ab'.repeat(33)], '66 digits'],
    ['witnesses without a quorum', ['r', '--witness', WITNESSES[0]], 'how many must cosign'],
    ['a quorum without witnesses', ['r', '--quorum', '1'], 'name the witnesses'],
    ['a witness of 31 bytes', ['r', '--witness', 'ab'.repeat(31), '--quorum', '1'], 'NAME+ID+KEY'],
    ['a witness twice', ['r', '--witness', WITNESSES[0], '--witness', WITNESSES[0], '--quorum', '2'], 'each once'],
    ['a quorum of half', ['r', ...WITNESSES.flatMap((key) => ['--witness', key]), '--quorum', '1'], 'more than half'],
    ['a quorum of none', ['r', '--witness', WITNESSES[0], '--quorum', '0'], 'more than half'],
    ['a quorum that is no number', ['r', '--witness', WITNESSES[0], '--quorum', '1e0'], 'more than half'],
    [
      'a contract with a wrong checksum',
      ['r', '--rpc', 'http://a', '--contract', CONTRACT.replace('C8', 'c8')],
      'checksum',
    ],
    ['a short contract', ['r', '--rpc', 'http://a', '--contract', '0xab'], '2 digits'],
    ['a contract without a node', ['r', '--contract', `0x${'ab'.repeat(20)}`], 'a node'],
    ['a log on the chain without an id', ['r', '--rpc', 'http://a', '--log-contract', CONTRACT], 'CONTRACT:ID:SIZE'],
    ['a log on the chain without a node', ['r', '--log-contract', `${CONTRACT}:${'ab'.repeat(32)}`], 'a node'],
    ['a URL without a protocol', ['r', '--api', 'wallet.example'], 'wallet.example'],
    ['a URL of another protocol', ['r', '--ipfs', 'ipfs://gateway'], 'ipfs://gateway'],
    ['a URL with credentials', ['r', '--rpc', 'https://user:pass@node.example'], 'node.example'],
    ['an API with a query', ['r', '--api', 'https://wallet.example/?a=b'], '?a=b'],
    ['a day that does not exist', ['r', '--collateral', 'c', '--at', '2026-02-30'], '2026-02-30'],
    ['a time without a zone', ['r', '--collateral', 'c', '--at', '2026-02-03T10:00:00'], '2026-02-03T10:00:00'],
    ['another time without collateral', ['r', '--at', 'now'], '--collateral'],
    ['an unknown status', ['r', '--tcb-status', 'Fine'], 'Fine'],
    ['a status that nobody may accept', ['r', '--tcb-status', 'Revoked'], 'Revoked'],
    ['a service offline', ['r', '--offline', '--api', 'http://a'], '--api'],
    ['a gateway offline', ['r', '--offline', '--ipfs', 'http://a'], '--ipfs'],
    ['a node offline', ['r', '--offline', '--rpc', 'http://a'], '--rpc'],
    ['a missing event without a node', ['r', '--allow-missing-event'], '--rpc'],
    ['explain with options', ['explain', 'f', '--offline'], '--offline'],
  ])('rejects %s as bad input', (_, argv, details) => {
    expect(() => parse(...argv)).toThrow(withCode('invalid_arguments', details))
  })

  test('names the wrong option', () => {
    expect(() => parse('r', '--entropy-key', 'ab')).toThrow('--entropy-key expects 32 bytes of hex')
    expect(() => parse('r', '--frobnicate')).toThrow(/^Unknown option '--frobnicate'$/)
  })
})
