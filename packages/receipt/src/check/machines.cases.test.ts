import type { SnpTcb } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { fromHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { type CheckReceiptOptions, checkReceipt, type Verdict } from '../checkReceipt.ts'
import { createReceiptSimulator, type SimulatedIssue, type SimulatedIssueOptions } from '../simulator/index.ts'
import type { Anchors } from './anchors.ts'
import { createEvent } from './event.fake.ts'
import type { StepId, StepStatus } from './steps.ts'

const signedAt = new Date('2026-06-15T12:00:00.123Z')
/** When the reader looks at a receipt, and from when their revocation list is. */
const readAt = new Date('2026-09-01T00:00:00Z')
const contract = `0x${'ab'.repeat(20)}`
const service = createReceiptSimulator()
const simulator = createSimulator({ at: readAt })

const tcb = { bootLoader: 4, tee: 1, snp: 24, microcode: 219 }
const floor: Partial<SnpTcb> = { bl: 4, tee: 1, snp: 24, ucode: 219 }
const hostData = new Uint8Array(32).fill(0x5a)
const guest = { hostData, reportedTcb: tcb }
/** Its secret is not dstack's, which takes events that no simulated silicon records. */
const issue = (options: Case['issue']) =>
  service.issue({ signedAt, config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` }, ...options })
const honest = await issue({ report: guest, certificates: { tcb } })
const [code = ''] = honest.anchors.coordinatorMeasurements
const [launch = '', stated = ''] = code.split(':')
const [chip = ''] = honest.anchors.coordinatorChips
const anchors: Anchors = { ...honest.anchors, coordinatorMinimumTcb: { Milan: floor } }

/** The same evidence, seen by a reader who takes the simulated roots and the satellite for the real ones. */
const asHardware = { roots: service.roots.map((root) => ({ ...root, mode: 'hardware' as const })), mockEntropyKeys: [] }
const asSimulated = { roots: service.roots, mockEntropyKeys: service.mockEntropyKeys }

type Case = {
  name: string
  /** Unless given, the honest one. */
  issue?: Omit<SimulatedIssueOptions, 'signedAt'>
  anchors?: Partial<Anchors>
  without?: keyof Anchors
  revocations?: Uint8Array
  isSimulated?: boolean
  policy?: NonNullable<CheckReceiptOptions['policy']>['coordinator']
  expected: [verdict: Verdict, step: StepId, status: StepStatus, code?: string]
}

/** Each part of each of the three versions, one below the floor. */
const floorCases = (['reportedTcb', 'committedTcb', 'launchTcb'] as const).flatMap((version) =>
  (['bootLoader', 'tee', 'snp', 'microcode'] as const).map((part): Case => {
    const old = { ...tcb, [part]: tcb[part] - 1 }
    const others = { reportedTcb: tcb, committedTcb: tcb, launchTcb: tcb }
    return {
      name: `${part} of the ${version} is one below the floor`,
      issue: {
        report: { ...guest, ...others, [version]: old },
        certificates: { tcb: version === 'reportedTcb' ? old : tcb },
      },
      expected: ['failed', 'coordinator-policy', 'fail', 'tcb_too_old'],
    }
  }),
)

const list = simulator.revocations()
const vlek: Case['issue'] = { report: { ...guest, signingKey: 'vlek' }, certificates: { tcb, signingKey: 'vlek' } }

const cases: readonly Case[] = [
  { name: 'everything named and reached', expected: ['verified', 'coordinator-policy', 'pass'] },

  // Code
  { name: 'the measurement with its HOST_DATA', expected: ['verified', 'coordinator-measurement', 'pass'] },
  {
    name: 'the measurement alone',
    anchors: { coordinatorMeasurements: [launch] },
    expected: ['unknown-code', 'coordinator-measurement', 'skip'],
  },
  {
    name: 'the measurement alone, for a guest without HOST_DATA',
    issue: { report: { reportedTcb: tcb }, certificates: { tcb } },
    anchors: { coordinatorMeasurements: [launch] },
    expected: ['unknown-code', 'coordinator-measurement', 'skip'],
  },
  {
    name: 'other HOST_DATA',
    issue: { report: { ...guest, hostData: new Uint8Array(32).fill(0x5b) }, certificates: { tcb } },
    expected: ['failed', 'coordinator-measurement', 'fail', 'not_in_manifest'],
  },
  {
    name: 'no HOST_DATA where some is named',
    issue: { report: { reportedTcb: tcb }, certificates: { tcb } },
    expected: ['failed', 'coordinator-measurement', 'fail', 'not_in_manifest'],
  },
  {
    name: 'HOST_DATA of one measurement with another',
    issue: { report: { ...guest, measurement: new Uint8Array(48).fill(1) }, certificates: { tcb } },
    anchors: { coordinatorMeasurements: [code, `${'01'.repeat(48)}:${'00'.repeat(32)}`] },
    expected: ['failed', 'coordinator-measurement', 'fail', 'not_in_manifest'],
  },
  {
    name: 'other HOST_DATA, with the measurement named alone beside it',
    anchors: { coordinatorMeasurements: [`${launch}:${'01'.repeat(32)}`, launch] },
    expected: ['unknown-code', 'coordinator-measurement', 'skip'],
  },
  {
    name: 'HOST_DATA in upper case is nobody’s',
    anchors: { coordinatorMeasurements: [`${launch}:${stated.toUpperCase()}`] },
    expected: ['failed', 'coordinator-measurement', 'fail', 'not_in_manifest'],
  },

  // State
  ...floorCases,
  {
    name: 'no floor',
    without: 'coordinatorMinimumTcb',
    expected: ['unknown-code', 'coordinator-policy', 'skip'],
  },
  {
    name: 'a floor of nothing',
    anchors: { coordinatorMinimumTcb: { Milan: { snp: 0 } } },
    expected: ['unknown-code', 'coordinator-policy', 'skip'],
  },
  {
    name: 'a floor for another product',
    anchors: { coordinatorMinimumTcb: { Genoa: floor } },
    expected: ['failed', 'coordinator-policy', 'fail', 'platform_not_allowed'],
  },
  {
    name: 'the alias check not completed',
    issue: { report: { ...guest, platformInfo: 0x05n }, certificates: { tcb } },
    expected: ['failed', 'coordinator-policy', 'fail', 'alias_check_missing'],
  },
  {
    name: 'the alias check not completed, with every other bit of the platform',
    issue: { report: { ...guest, platformInfo: 0xdfn }, certificates: { tcb } },
    expected: ['failed', 'coordinator-policy', 'fail', 'alias_check_missing'],
  },
  {
    name: 'a report too old to state the alias check',
    issue: { report: { ...guest, version: 2 }, certificates: { tcb } },
    expected: ['failed', 'coordinator-policy', 'fail', 'alias_check_missing'],
  },
  {
    name: 'a report too old to state it, with the bit set all the same',
    issue: { report: { ...guest, version: 2, platformInfo: 0x21n }, certificates: { tcb } },
    expected: ['failed', 'coordinator-policy', 'fail', 'alias_check_missing'],
  },
  {
    name: 'no alias check, by a reader who allows it',
    issue: { report: { ...guest, platformInfo: 0x05n }, certificates: { tcb } },
    policy: { allowUncheckedAliases: true },
    expected: ['verified', 'coordinator-policy', 'pass'],
  },

  // Chips
  { name: 'a listed Milan under AMD’s root', expected: ['verified', 'coordinator-chip', 'pass'] },
  {
    name: 'an unlisted Milan under AMD’s root',
    without: 'coordinatorChips',
    expected: ['failed', 'coordinator-chip', 'fail', 'chip_not_listed'],
  },
  {
    name: 'an empty list of chips lists no Milan',
    anchors: { coordinatorChips: [] },
    expected: ['failed', 'coordinator-chip', 'fail', 'chip_not_listed'],
  },
  {
    name: 'an unlisted Milan that is simulated',
    without: 'coordinatorChips',
    isSimulated: true,
    expected: ['mock', 'coordinator-chip', 'skip'],
  },
  {
    name: 'another chip than the listed one',
    anchors: { coordinatorChips: [`${chip.slice(0, -2)}00`] },
    expected: ['failed', 'coordinator-chip', 'fail', 'chip_not_allowed'],
  },
  {
    name: 'another chip than the listed one, simulated',
    anchors: { coordinatorChips: ['01'.repeat(64)] },
    isSimulated: true,
    expected: ['failed', 'coordinator-chip', 'fail', 'chip_not_allowed'],
  },
  {
    name: 'a chip by its first 8 bytes is a mistake of the reader',
    anchors: { coordinatorChips: [chip.slice(0, 16)] },
    expected: ['failed', 'coordinator-chip', 'fail', 'policy_invalid'],
  },
  {
    name: 'a VLEK, where chips are listed',
    issue: vlek,
    policy: { signingKeys: ['VLEK'] },
    expected: ['failed', 'coordinator-chip', 'fail', 'chip_not_named'],
  },
  {
    name: 'a VLEK whose report states the listed chip',
    issue: {
      report: { ...guest, signingKey: 'vlek', chipId: fromHex(chip) },
      certificates: { tcb, signingKey: 'vlek' },
    },
    policy: { signingKeys: ['VLEK'] },
    expected: ['failed', 'coordinator-chip', 'fail', 'chip_not_named'],
  },

  // Revocations
  { name: 'no revocation list', expected: ['verified', 'coordinator-revocation', 'skip'] },
  {
    name: 'a list that names nobody',
    revocations: list,
    expected: ['verified', 'coordinator-revocation', 'pass'],
  },
  {
    name: 'a list that names the key of VLEKs, for a VCEK',
    revocations: simulator.revocations({ revoked: ['asvk'] }),
    expected: ['verified', 'coordinator-revocation', 'pass'],
  },
  {
    name: 'a revoked ASK',
    revocations: simulator.revocations({ revoked: ['asvk', 'ask'] }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'certificate_revoked'],
  },
  {
    name: 'a revoked VCEK',
    revocations: simulator.revocations({ revoked: ['ek'] }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'certificate_revoked'],
  },
  {
    name: 'a revoked ARK',
    revocations: simulator.revocations({ revoked: ['ark'] }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'certificate_revoked'],
  },
  {
    name: 'a stale list',
    revocations: simulator.revocations({ faults: { expired: true } }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_expired'],
  },
  {
    name: 'a stale list that revokes: what it says no longer counts',
    revocations: simulator.revocations({ revoked: ['ask'], faults: { expired: true } }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_expired'],
  },
  {
    name: 'a list from the future',
    revocations: simulator.revocations({ faults: { notYetValid: true } }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_not_yet_valid'],
  },
  {
    name: 'a list without nextUpdate',
    revocations: simulator.revocations({ faults: { noNextUpdate: true } }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_without_next_update'],
  },
  {
    name: 'a list of another signer under the same name',
    revocations: simulator.revocations({ faults: { wrongSigner: true } }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_signature_invalid'],
  },
  {
    name: 'the list of another product',
    revocations: simulator.revocations({ faults: { otherProduct: true } }),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_signature_invalid'],
  },
  {
    name: 'Intel’s list',
    revocations: fromHex(simulator.collateral().root_ca_crl),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_signature_invalid'],
  },
  {
    name: 'a truncated list',
    revocations: list.slice(0, -1),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_malformed'],
  },
  {
    name: 'a byte after the list',
    revocations: Uint8Array.from([...list, 0]),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_malformed'],
  },
  {
    name: 'an empty list file',
    revocations: new Uint8Array(),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_malformed'],
  },
  {
    name: 'one byte of the list changed',
    revocations: list.map((byte, index) => (index === list.length - 1 ? byte ^ 1 : byte)),
    expected: ['failed', 'coordinator-revocation', 'fail', 'crl_signature_invalid'],
  },
]

/** A chain with the event of a receipt. */
function toChain({ cid, receipt }: SimulatedIssue): NonNullable<CheckReceiptOptions['chain']> {
  const { from: wallet, txHash } = receipt.transaction
  const log = createEvent({ contract, wallet, txHash, cid, blockTime: new Date(signedAt.getTime() + 9_000) })
  return { getLogs: async () => [log], getTransactionState: async () => 'mined' }
}

describe('the coordinator’s machine', () => {
  test('has a case for each thing that can be wrong, under a name of its own', () => {
    expect(cases.length).toBeGreaterThanOrEqual(50)
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length)
  })

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

  test('a list that is good today says nothing of when a receipt was signed: it is judged when it is read', async () => {
    const at = (time: Date) =>
      checkReceipt(honest.bytes, honest.collateral, { ...asHardware, anchors, revocations: { list, at: time } })
    const stepOf = async (time: Date) => (await at(time)).steps.find(({ id }) => id === 'coordinator-revocation')
    expect(await stepOf(readAt)).toMatchObject({ status: 'pass' })
    expect(await stepOf(signedAt)).toMatchObject({ status: 'fail', code: 'crl_not_yet_valid' })
    expect(await stepOf(new Date(Number.NaN))).toMatchObject({ status: 'fail', code: 'crl_expired' })
  })

  test('a foreign root under its own list is not trusted for it', async () => {
    const result = await checkReceipt(honest.bytes, honest.collateral, {
      roots: [],
      anchors,
      revocations: { list, at: readAt },
    })
    expect(result.steps.find(({ id }) => id === 'coordinator-revocation')?.status).toBe('skip')
  })
})
