import type { SnpTcb } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { fromHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createEvent } from '../../test/checkReceipt.ts'
import { type CheckReceiptOptions, checkReceipt, type Verdict } from '../checkReceipt.ts'
import { createReceiptSimulator, type SimulatedIssue, type SimulatedIssueOptions } from '../simulator/index.ts'
import type { Anchors } from './anchors.ts'
import type { StepId, StepStatus } from './steps.ts'

const signedAt = new Date('2026-06-15T12:00:00.123Z')
/** When the reader checks a receipt, and the date of their revocation list. */
const readAt = new Date('2026-09-01T00:00:00Z')
const contract = `0x${'ab'.repeat(20)}`
const service = createReceiptSimulator()
const simulator = createSimulator({ at: readAt })

const tcb = { bootLoader: 4, tee: 1, snp: 24, microcode: 219 }
const floor: Partial<SnpTcb> = { bl: 4, tee: 1, snp: 24, ucode: 219 }
const hostData = new Uint8Array(32).fill(0x5a)
const guest = { hostData, reportedTcb: tcb }
/** Not dstack's secret, which would need events that simulated hardware doesn't record. */
const issue = (options: CaseOptions['issue']) =>
  service.issue({ signedAt, config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` }, ...options })
const honest = await issue({ report: guest, certificates: { tcb } })
const [code = ''] = honest.anchors.coordinatorMeasurements
const [launch = '', stated = ''] = code.split(':')
const [chip = ''] = honest.anchors.coordinatorChips
const anchors: Anchors = { ...honest.anchors, coordinatorMinimumTcb: { Milan: floor } }

/** The same evidence, for a reader who takes the simulated roots and the satellite for real ones. */
const asHardware = { roots: service.roots.map((root) => ({ ...root, mode: 'hardware' as const })), mockEntropyKeys: [] }
const asSimulated = { roots: service.roots, mockEntropyKeys: service.mockEntropyKeys }

type CaseOptions = {
  /** Default: the honest one. */
  issue?: Omit<SimulatedIssueOptions, 'signedAt'>
  anchors?: Partial<Anchors>
  without?: keyof Anchors
  revocations?: Uint8Array
  isSimulated?: boolean
  policy?: NonNullable<CheckReceiptOptions['policy']>['coordinator']
}
type Expected = [verdict: Verdict, step: StepId, status: StepStatus, code?: string]
type Case = CaseOptions & { name: string; expected: Expected }

const of = (expected: Expected, given: Readonly<Record<string, CaseOptions>>): Case[] =>
  Object.entries(given).map(([name, row]) => ({ name, expected, ...row }))
const verified = (step: StepId, given: Readonly<Record<string, CaseOptions>>, status: StepStatus = 'pass') =>
  of(['verified', step, status], given)
const unknown = (step: StepId, given: Readonly<Record<string, CaseOptions>>) =>
  of(['unknown-code', step, 'skip'], given)
const failed = (step: StepId, code: string, given: Readonly<Record<string, CaseOptions>>) =>
  of(['failed', step, 'fail', code], given)

/** A guest with another report. */
const reporting = (report: Partial<NonNullable<SimulatedIssueOptions['report']>>): CaseOptions => ({
  issue: { report: { ...guest, ...report }, certificates: { tcb } },
})

/** Each part of each of the three versions, one below the minimum. */
const floorCases = (['reportedTcb', 'committedTcb', 'launchTcb'] as const).flatMap((version) =>
  (['bootLoader', 'tee', 'snp', 'microcode'] as const).map((part): [string, CaseOptions] => {
    const old = { ...tcb, [part]: tcb[part] - 1 }
    const report = { ...guest, reportedTcb: tcb, committedTcb: tcb, launchTcb: tcb, [version]: old }
    const certificates = { tcb: version === 'reportedTcb' ? old : tcb }
    return [`${part} of the ${version} is one below the floor`, { issue: { report, certificates } }]
  }),
)

const list = simulator.revocations()
const listing = (options: Parameters<typeof simulator.revocations>[0]): CaseOptions => ({
  revocations: simulator.revocations(options),
})
const vlek: NonNullable<CaseOptions['issue']> = {
  report: { ...guest, signingKey: 'vlek' },
  certificates: { tcb, signingKey: 'vlek' },
}
const withoutData: CaseOptions['issue'] = { report: { reportedTcb: tcb }, certificates: { tcb } }
const takingVlek: CaseOptions = { policy: { signingKeys: ['VLEK'] } }

const codeCases = [
  ...verified('coordinator-measurement', { 'the measurement with its HOST_DATA': {} }),
  ...unknown('coordinator-measurement', {
    'only the measurement': { anchors: { coordinatorMeasurements: [launch] } },
    'only the measurement, for a guest without HOST_DATA': {
      issue: withoutData,
      anchors: { coordinatorMeasurements: [launch] },
    },
    'other HOST_DATA, with another entry of only the measurement': {
      anchors: { coordinatorMeasurements: [`${launch}:${'01'.repeat(32)}`, launch] },
    },
  }),
  ...failed('coordinator-measurement', 'measurement_not_allowed', {
    'other HOST_DATA': reporting({ hostData: new Uint8Array(32).fill(0x5b) }),
    'no HOST_DATA where some is named': { issue: withoutData },
    'HOST_DATA of one measurement with another': {
      ...reporting({ measurement: new Uint8Array(48).fill(1) }),
      anchors: { coordinatorMeasurements: [code, `${'01'.repeat(48)}:${'00'.repeat(32)}`] },
    },
  }),
  ...failed('coordinator-measurement', 'policy_invalid', {
    'HOST_DATA in upper case matches none': {
      anchors: { coordinatorMeasurements: [`${launch}:${stated.toUpperCase()}`] },
    },
  }),
]

const stateCases = [
  ...failed('coordinator-policy', 'tcb_too_old', Object.fromEntries(floorCases)),
  ...unknown('coordinator-policy', {
    'no floor': { without: 'coordinatorMinimumTcb' },
    'a floor of nothing': { anchors: { coordinatorMinimumTcb: { Milan: { snp: 0 } } } },
    'a floor that names no part': { anchors: { coordinatorMinimumTcb: { Milan: {} } } },
  }),
  ...failed('coordinator-policy', 'platform_not_allowed', {
    'a floor for another product': { anchors: { coordinatorMinimumTcb: { Genoa: floor } } },
    'floors for no product': { anchors: { coordinatorMinimumTcb: {} } },
  }),
  ...failed('coordinator-policy', 'attributes_not_allowed', {
    'bit 26 of the guest policy': reporting({ policy: (1n << 17n) | (1n << 26n) }),
    'bit 63 of the guest policy': reporting({ policy: (1n << 17n) | (1n << 63n) }),
  }),
  ...verified('coordinator-policy', {
    'everything named and reached': {},
    'bits 21 to 25 of the guest policy': reporting({ policy: (1n << 17n) | (0x1fn << 21n) }),
    'no alias check, by a reader who allows it': {
      ...reporting({ platformInfo: 0x05n }),
      policy: { allowUncheckedAliases: true },
    },
  }),
  ...failed('coordinator-policy', 'signing_key_not_allowed', {
    'a VLEK without listed chips': { issue: vlek, without: 'coordinatorChips', isSimulated: true },
  }),
  ...failed('coordinator-policy', 'alias_check_missing', {
    'the alias check not completed': reporting({ platformInfo: 0x05n }),
    'the alias check not completed, with every other bit of the platform': reporting({ platformInfo: 0xdfn }),
    'a report too old to state the alias check': reporting({ version: 2 }),
    'a report too old to state it, with the bit set all the same': reporting({ version: 2, platformInfo: 0x21n }),
  }),
]

const chipCases = [
  ...verified('coordinator-chip', { 'a listed Milan under AMD’s root': {} }),
  ...of(['mock', 'coordinator-chip', 'skip'], {
    'an unlisted Milan that is simulated': { without: 'coordinatorChips', isSimulated: true },
  }),
  ...failed('coordinator-chip', 'chip_not_listed', {
    'an unlisted Milan under AMD’s root': { without: 'coordinatorChips' },
    'an empty list of chips lists no Milan': { anchors: { coordinatorChips: [] } },
  }),
  ...failed('coordinator-chip', 'chip_not_allowed', {
    'another chip than the listed one': { anchors: { coordinatorChips: [`${chip.slice(0, -2)}00`] } },
    'another chip than the listed one, simulated': {
      anchors: { coordinatorChips: ['01'.repeat(64)] },
      isSimulated: true,
    },
  }),
  ...failed('coordinator-chip', 'policy_invalid', {
    'a chip by its first 8 bytes is a mistake of the reader': { anchors: { coordinatorChips: [chip.slice(0, 16)] } },
  }),
  ...failed('coordinator-chip', 'chip_not_named', {
    'a VLEK, where chips are listed': { ...takingVlek, issue: vlek },
    'a VLEK whose report states the listed chip': {
      ...takingVlek,
      issue: { ...vlek, report: { ...vlek.report, chipId: fromHex(chip) } },
    },
  }),
]

const revocationCases = [
  ...verified('coordinator-revocation', { 'no revocation list': {} }, 'skip'),
  ...verified('coordinator-revocation', {
    'an empty list': { revocations: list },
    'a list that names the key of VLEKs, for a VCEK': listing({ revoked: ['asvk'] }),
  }),
  ...failed('coordinator-revocation', 'certificate_revoked', {
    'a revoked ASK': listing({ revoked: ['asvk', 'ask'] }),
    'a revoked VCEK': listing({ revoked: ['ek'] }),
    'a revoked ARK': listing({ revoked: ['ark'] }),
  }),
  ...failed('coordinator-revocation', 'crl_expired', {
    'a stale list': listing({ faults: { expired: true } }),
    'a stale list that revokes: what it says no longer counts': listing({
      revoked: ['ask'],
      faults: { expired: true },
    }),
  }),
  ...failed('coordinator-revocation', 'crl_not_yet_valid', {
    'a list from the future': listing({ faults: { notYetValid: true } }),
  }),
  ...failed('coordinator-revocation', 'crl_without_next_update', {
    'a list without nextUpdate': listing({ faults: { noNextUpdate: true } }),
  }),
  ...failed('coordinator-revocation', 'crl_signature_invalid', {
    'a list of another signer under the same name': listing({ faults: { wrongSigner: true } }),
    'the list of another product': listing({ faults: { otherProduct: true } }),
    'Intel’s list': { revocations: fromHex(simulator.collateral().root_ca_crl) },
    'one byte of the list changed': {
      revocations: list.map((byte, index) => (index === list.length - 1 ? byte ^ 1 : byte)),
    },
  }),
  ...failed('coordinator-revocation', 'crl_malformed', {
    'a truncated list': { revocations: list.slice(0, -1) },
    'a byte after the list': { revocations: Uint8Array.from([...list, 0]) },
    'an empty list file': { revocations: new Uint8Array() },
  }),
]

const cases: readonly Case[] = [...codeCases, ...stateCases, ...chipCases, ...revocationCases]

/** A chain with the event of a receipt. */
function toChain({ cid, receipt }: SimulatedIssue): NonNullable<CheckReceiptOptions['chain']> {
  const { from: wallet, txHash } = receipt.transaction
  const log = createEvent({ contract, wallet, txHash, cid, blockTime: new Date(signedAt.getTime() + 9_000) })
  return { getLogs: async () => [log], getTransactionState: async () => 'mined' }
}

describe('the coordinator’s machine', () => {
  test.each(cases.map((row) => [row.name, row] as const))('%s', async (_, row) => {
    const issued = row.issue === undefined ? honest : await issue(row.issue)
    const { [row.without ?? 'contract']: _left, ...kept } = { ...anchors, ...row.anchors }
    const [verdict, id, status, errorCode] = row.expected
    const result = await checkReceipt(issued.bytes, issued.collateral, {
      ...(row.isSimulated === true ? asSimulated : asHardware),
      anchors: { ...kept, contract },
      chain: toChain(issued),
      ...(row.policy === undefined ? {} : { policy: { coordinator: row.policy } }),
      ...(row.revocations === undefined ? {} : { revocations: { list: row.revocations, at: readAt } }),
    })
    const step = result.steps.find((candidate) => candidate.id === id)
    expect([result.verdict, id, step?.status, step?.code]).toEqual([verdict, id, status, errorCode])
    const failed = result.steps.filter((candidate) => candidate.status === 'fail').map((candidate) => candidate.id)
    expect(failed).toEqual(status === 'fail' ? [id] : [])
  })

  test('names the parts of the launch that differ from the closest entry', async () => {
    const [otherLaunch, otherData] = ['01'.repeat(48), '02'.repeat(32)]
    const { steps } = await checkReceipt(honest.bytes, honest.collateral, {
      ...asHardware,
      anchors: { ...anchors, coordinatorMeasurements: [`${otherLaunch}:${otherData}`, `${launch}:${otherData}`] },
    })
    expect(steps.find(({ id }) => id === 'coordinator-measurement')?.differences).toEqual([
      { name: 'HOST_DATA', expected: [otherData], found: [stated] },
    ])
  })

  test('checks a list at its reading time: being valid today says nothing about the signing time', async () => {
    const at = (time: Date) =>
      checkReceipt(honest.bytes, honest.collateral, { ...asHardware, anchors, revocations: { list, at: time } })
    const stepOf = async (time: Date) => (await at(time)).steps.find(({ id }) => id === 'coordinator-revocation')
    expect(await stepOf(readAt)).toMatchObject({ status: 'pass' })
    expect(await stepOf(signedAt)).toMatchObject({ status: 'fail', code: 'crl_not_yet_valid' })
    expect(await stepOf(new Date(Number.NaN))).toMatchObject({ status: 'fail', code: 'crl_expired' })
  })

  test('rejects another root with its own list', async () => {
    const result = await checkReceipt(honest.bytes, honest.collateral, {
      roots: [],
      anchors,
      revocations: { list, at: readAt },
    })
    expect(result.steps.find(({ id }) => id === 'coordinator-revocation')?.status).toBe('skip')
  })
})
