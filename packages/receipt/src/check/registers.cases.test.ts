import {
  type CodeRegister,
  codeEvents,
  codeRegisters,
  type Difference,
  type PckPlatform,
  parsePckPlatform,
  parseQuote,
  type TdMeasurement,
  type TdPlatform,
} from '@countersign/attestation'
import { fromHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { checkReceipt, type Verdict } from '../checkReceipt.ts'
import { createReceiptSimulator, type SimulatedIssueOptions } from '../simulator/index.ts'
import type { Anchors } from './anchors.ts'
import { DSTACK_SECRET } from './checkSigner.ts'
import type { StepId, StepStatus } from './steps.ts'

const service = createReceiptSimulator()
const asHardware = service.roots.map((root) => ({ ...root, mode: 'hardware' as const }))
const signedAt = new Date('2026-06-15T12:00:00.000Z')
const bytes = (byte: number) => new Uint8Array(48).fill(byte)
const hex = (byte: number) => byte.toString(16).padStart(2, '0').repeat(48)

/** Secrets that no contract's owner can give to other code. */
const attested = { rootSecret: `attested:sha256:${'ab'.repeat(32)}` }
const dstack = { rootSecret: 'dstack' }

/** An enclave with a different value in each register. */
const registers: Record<CodeRegister, number> = {
  mrTd: 1,
  rtmr0: 2,
  rtmr1: 3,
  rtmr2: 4,
  rtmr3: 5,
  mrConfigId: 6,
  mrOwner: 7,
  mrOwnerConfig: 8,
}
const zeros: typeof registers = { ...registers, rtmr3: 0, mrConfigId: 0, mrOwner: 0, mrOwnerConfig: 0 }

function toQuote({ mrTd, rtmr0, rtmr1, rtmr2, rtmr3, ...launch }: typeof registers) {
  return {
    mrtd: bytes(mrTd),
    rtmrs: [bytes(rtmr0), bytes(rtmr1), bytes(rtmr2), bytes(rtmr3)] as const,
    mrConfigId: bytes(launch.mrConfigId),
    mrOwner: bytes(launch.mrOwner),
    mrOwnerConfig: bytes(launch.mrOwnerConfig),
  }
}

const toMeasurement = (values: typeof registers) =>
  Object.fromEntries(codeRegisters.map((name) => [name, hex(values[name])])) as Required<TdMeasurement>
const whole = toMeasurement(registers)
const without = <Shape extends object>(shape: Shape, ...names: (keyof Shape)[]) =>
  Object.fromEntries(Object.entries(shape).filter(([name]) => !names.includes(name as keyof Shape))) as Shape

const payloads = { 'app-id': 'a0'.repeat(20), 'compose-hash': 'c0'.repeat(32), 'key-provider': '6b6d73' }
const log = [
  ...Object.entries(payloads).map(([name, payload]) => ({ name, payload })),
  { name: 'instance-id', payload: '11' },
]
const events = Object.fromEntries(Object.entries(payloads).map(([name, payload]) => [name, [payload]]))

type Expected = {
  verdict: Verdict
  /** The tested step. */
  step: StepId
  status: StepStatus
  code?: string
  /** Parts of its sentence. */
  says?: readonly string[]
  /** The registers and events in its differences, in order. */
  differences?: readonly Difference[]
}

type Case = {
  name: string
  issue: Partial<SimulatedIssueOptions>
  /** The reader's anchors, in addition to settings, coordinator and entropy. The measured RTMR3 is `rtmr3`. */
  anchors: (measured: Required<TdMeasurement>, platform: PckPlatform) => Anchors
  isMock?: boolean
  expected: Expected
}

const honest: Partial<SimulatedIssueOptions> = { config: attested, quote: toQuote(registers) }
const onDstack: Partial<SimulatedIssueOptions> = { config: dstack, events: log }
const trusting = (measurement: TdMeasurement) => () => ({ measurements: [measurement] })
/** All except RTMR3, which differs from guest to guest. */
const trustingEvents = (accepted: Anchors['events']) => (measured: Required<TdMeasurement>) => ({
  measurements: [without(measured, 'rtmr3')],
  events: accepted ?? {},
})

const known: Expected = { verdict: 'unbounded', step: 'measurement', status: 'pass' }
const open = (...says: string[]): Expected => ({ verdict: 'unknown-code', step: 'measurement', status: 'skip', says })
const foreign = (code: string, differences?: readonly Difference[]): Expected => ({
  verdict: 'failed',
  step: 'measurement',
  status: 'fail',
  code,
  ...(differences && { differences }),
})
const differsIn = (name: CodeRegister): Difference => ({
  name: name.toUpperCase(),
  expected: [whole[name]],
  found: [hex(9)],
})

const registerCases: readonly Case[] = [
  { name: 'every register named', issue: honest, anchors: trusting(whole), expected: known },
  ...codeRegisters.map((name) => ({
    name: `foreign ${name}`,
    issue: { ...honest, quote: toQuote({ ...registers, [name]: 9 }) },
    anchors: trusting(whole),
    expected: foreign('measurement_not_allowed', [differsIn(name)]),
  })),
  {
    name: 'two foreign registers, compared with the closest of three entries',
    issue: { ...honest, quote: toQuote({ ...registers, rtmr1: 9, rtmr3: 9 }) },
    anchors: () => ({ measurements: [{ ...whole, mrTd: hex(8) }, whole, { ...whole, mrOwner: hex(8) }] }),
    expected: foreign('measurement_not_allowed', [differsIn('rtmr1'), differsIn('rtmr3')]),
  },
  ...codeRegisters.slice(1).map((name) => ({
    name: `${name} not named`,
    issue: honest,
    anchors: trusting(without(whole, name)),
    expected: open(`they do not name ${name.toUpperCase()}`),
  })),
  ...(['mrConfigId', 'mrOwner', 'mrOwnerConfig'] as const).map((name) => ({
    name: `foreign ${name} where only MRTD and RTMRs are named`,
    issue: { ...honest, quote: toQuote({ ...registers, [name]: 9 }) },
    anchors: trusting(without(whole, 'mrConfigId', 'mrOwner', 'mrOwnerConfig')),
    expected: open('they do not name MRCONFIGID, MROWNER and MROWNERCONFIG.'),
  })),
  {
    name: 'only MRTD',
    issue: honest,
    anchors: trusting({ mrTd: whole.mrTd }),
    expected: open('RTMR0, RTMR1, RTMR2, RTMR3, MRCONFIGID, MROWNER and MROWNERCONFIG', 'for RTMR3, the events'),
  },
  {
    name: 'zeros named as zeros',
    issue: { ...honest, quote: toQuote(zeros) },
    anchors: trusting(toMeasurement(zeros)),
    expected: known,
  },
  {
    name: 'zeros in what is not named',
    issue: { ...honest, quote: toQuote(zeros) },
    anchors: trusting(without(toMeasurement(zeros), 'mrOwner')),
    expected: open('they do not name MROWNER.'),
  },
  {
    name: 'zeros named, the register in use',
    issue: { ...honest, quote: toQuote({ ...zeros, mrConfigId: 6 }) },
    anchors: trusting(toMeasurement(zeros)),
    expected: foreign('measurement_not_allowed'),
  },
  {
    name: 'a whole measurement, and one of the firmware',
    issue: honest,
    anchors: () => ({ measurements: [{ mrTd: whole.mrTd }, whole] }),
    expected: known,
  },
  {
    name: 'a whole measurement of other code, and one of the firmware',
    issue: honest,
    anchors: () => ({ measurements: [{ ...whole, rtmr2: hex(9) }, { mrTd: whole.mrTd }] }),
    expected: open('MROWNERCONFIG'),
  },
]

/** The measured RTMR3, and these events. */
const trustingBoth = (accepted?: Anchors['events']) => (measured: Required<TdMeasurement>) => ({
  measurements: [measured],
  ...(accepted && { events: accepted }),
})
const onOther: Partial<SimulatedIssueOptions> = { ...onDstack, config: attested }
const otherApp = { ...events, 'app-id': ['ee'] }

type Row = [name: string, issue: Case['issue'], anchors: Case['anchors'], expected: Expected]

const named: Row[] = [
  [
    'compose-hash, app-id and key-provider named',
    onDstack,
    trustingEvents(events),
    { ...known, says: [DSTACK_SECRET] },
  ],
  ['those and RTMR3 named', onDstack, trustingBoth(events), { ...known, says: [DSTACK_SECRET] }],
  ...codeEvents.map(
    (name): Row => [
      `${name} not named, nor RTMR3`,
      onDstack,
      trustingEvents(without(events, name)),
      open('they do not name RTMR3 (for RTMR3, the events compose-hash, app-id and key-provider are enough).'),
    ],
  ),
  ...codeEvents.map(
    (name): Row => [
      `RTMR3 without ${name}`,
      onDstack,
      trustingBoth(without(events, name)),
      open(`they do not name dstack’s events ${name}.`),
    ],
  ),
  [
    'RTMR3 without events',
    onDstack,
    trustingBoth(),
    open('they do not name dstack’s events compose-hash, app-id and key-provider.'),
  ],
  ['the secret is not dstack’s, and RTMR3 is named without events', onOther, trustingBoth(), known],
  [
    'no dstack, with RTMR3, and the events of a release for dstack',
    honest,
    () => ({ measurements: [whole, { ...without(whole, 'rtmr3'), mrTd: hex(9) }], events }),
    known,
  ],
  [
    'no dstack, without RTMR3, and the events of a release for dstack',
    honest,
    () => ({ measurements: [without(whole, 'rtmr3')], events }),
    foreign('event_not_allowed'),
  ],
  [
    'the secret is dstack’s, RTMR3 is named, and the events are of another application',
    onDstack,
    trustingBoth(otherApp),
    foreign('event_not_allowed'),
  ],
  [
    'the secret is dstack’s, RTMR3 is named, and another named event has another payload',
    onDstack,
    trustingBoth({ ...events, 'instance-id': ['22'] }),
    foreign('event_not_allowed'),
  ],
  [
    'the secret is not dstack’s, RTMR3 is named, and the events are of another application',
    onOther,
    trustingBoth(otherApp),
    known,
  ],
  ...codeEvents.map(
    (name): Row => [
      `${name} not in the log`,
      { ...onDstack, events: log.filter((event) => event.name !== name) },
      trustingEvents(events),
      foreign('event_not_allowed', [{ name, expected: [payloads[name]], found: [] }]),
    ],
  ),
  ...codeEvents.map(
    (name): Row => [
      `foreign ${name}`,
      { ...onDstack, events: log.map((event) => (event.name === name ? { name, payload: 'ee' } : event)) },
      trustingEvents(events),
      foreign('event_not_allowed', [{ name, expected: [payloads[name]], found: ['ee'] }]),
    ],
  ),
  [
    'a second compose-hash of other code',
    { ...onDstack, events: [...log, { name: 'compose-hash', payload: 'ee' }] },
    trustingEvents(events),
    foreign('event_not_allowed'),
  ],
  ['events named, but no log', { ...honest, config: dstack }, trustingEvents(events), foreign('event_not_allowed')],
  [
    'a log of another RTMR3',
    { ...onDstack, quote: toQuote(registers) },
    trustingEvents(events),
    { verdict: 'failed', step: 'quote', status: 'fail', code: 'event_log_mismatch' },
  ],
  [
    'foreign MRCONFIGID',
    { ...onDstack, quote: { mrConfigId: bytes(9) } },
    (measured) => ({ measurements: [{ ...without(measured, 'rtmr3'), mrConfigId: hex(0) }], events }),
    foreign('measurement_not_allowed'),
  ],
]

const dstackCases: readonly Case[] = [
  ...named.map(([name, issue, anchors, expected]) => ({ name, issue, anchors, expected })),
  {
    name: 'on simulated silicon, which records no events',
    issue: { ...honest, config: dstack },
    anchors: trusting(whole),
    isMock: true,
    expected: { ...known, verdict: 'mock', says: [DSTACK_SECRET] },
  },
]

const listing = (list: (platform: PckPlatform) => readonly TdPlatform[]) => (_: unknown, platform: PckPlatform) => ({
  measurements: [whole],
  platforms: list(platform),
})
const listed = (...says: string[]): Expected => ({ verdict: 'unbounded', step: 'platform', status: 'pass', says })
const unlisted: Expected = { verdict: 'failed', step: 'platform', status: 'fail', code: 'platform_not_allowed' }
const instanceOf = ({ platformInstanceId = '' }: PckPlatform) => platformInstanceId

const machines: [name: string, list: Parameters<typeof listing>[0], expected: Expected][] = [
  ['listed FMSPC', ({ fmspc }) => [{ fmspc }], listed('its fmspc')],
  ['listed PPID', ({ ppid }) => [{ ppid }], listed('its ppid')],
  [
    'listed platform instance',
    (platform) => [{ platformInstanceId: instanceOf(platform) }],
    listed('its platformInstanceId'),
  ],
  ['the second of two listed', ({ ppid }) => [{ ppid: '00'.repeat(16) }, { ppid }], listed('its ppid')],
  ['foreign FMSPC', () => [{ fmspc: '00806f050000' }], unlisted],
  ['foreign PPID', () => [{ ppid: '11'.repeat(16) }], unlisted],
  ['foreign platform instance', () => [{ platformInstanceId: '11'.repeat(16) }], unlisted],
  ['a PPID listed as a platform instance', ({ ppid }) => [{ platformInstanceId: ppid }], unlisted],
  ['a platform instance listed as a PPID', (platform) => [{ ppid: instanceOf(platform) }], unlisted],
  ['an entry without an identity names no machine', () => [{} as TdPlatform], unlisted],
  [
    'an entry with the right FMSPC and another PPID names no machine',
    ({ fmspc }) => [{ fmspc, ppid: '11'.repeat(16) } as TdPlatform],
    unlisted,
  ],
  ['none listed', () => [], { ...listed('FMSPC', 'PPID', 'platform instance id'), status: 'skip' }],
]

const platformCases: readonly Case[] = [
  ...machines.map(([name, list, expected]) => ({ name, issue: honest, anchors: listing(list), expected })),
  {
    name: 'a listed machine does not make code known',
    issue: honest,
    anchors: (_, { ppid }) => ({ platforms: [{ ppid }] }),
    expected: open('No measurements'),
  },
]

async function runCheck({ issue, anchors, isMock = false }: Case) {
  const issued = await service.issue({ signedAt, ...issue })
  const platform = parsePckPlatform(parseQuote(fromHex(issued.receipt.signer.quoteHex)).pckChain)
  const { measurements, ...others } = issued.anchors
  const [measured] = measurements as [Required<TdMeasurement>]
  return checkReceipt(issued.bytes, issued.collateral, {
    roots: isMock ? service.roots : asHardware,
    anchors: { ...others, ...anchors(measured, platform) },
  })
}

describe.each([
  ['registers that can hold code', registerCases],
  ['dstack’s events', dstackCases],
  ['machines', platformCases],
])('%s', (_, cases) => {
  test.each(cases.map((row) => [row.name, row.expected.verdict, row] as const))(
    '%s: %s',
    async (_name, _verdict, row) => {
      const { verdict, steps } = await runCheck(row)
      const { step: id, status, code, says = [], differences } = row.expected
      const step = steps.find((each) => each.id === id)
      expect({ verdict, id, status: step?.status, code: step?.code }).toEqual({
        verdict: row.expected.verdict,
        id,
        status,
        code,
      })
      for (const part of says) expect(step?.detail).toContain(part)
      if (differences !== undefined) expect(step?.differences).toEqual(differences)
      // No other step fails.
      const failures = steps.filter((each) => each.status === 'fail').map((each) => each.id)
      expect(failures).toEqual(status === 'fail' ? [id] : [])
    },
  )
})
