import { toHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createVerifier } from './createVerifier.ts'
import type { PolicyErrorCode } from './errors.ts'
import { assertLaunch, assertQuotePolicy, assertReportPolicy, type QuotePolicy, type ReportPolicy } from './policy.ts'
import { createSimulator, type SimulatedQuoteOptions, type SimulatedReportOptions } from './simulator/index.ts'

const at = new Date('2026-06-15T00:00:00Z')
const simulator = createSimulator({ at })
const verifier = createVerifier({ roots: [simulator.intelRoot, simulator.amdRoot] })
const reportData = new Uint8Array(64).fill(5)
const mrtd = new Uint8Array(48).fill(1)
const rtmrs = [2, 3, 4, 5].map((byte) => new Uint8Array(48).fill(byte)) as [
  Uint8Array,
  Uint8Array,
  Uint8Array,
  Uint8Array,
]
const chipId = new Uint8Array(64).fill(6)
const hex = (byte: number, length = 48) => toHex(new Uint8Array(length).fill(byte))
const attributes = (value: bigint) => {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value, true)
  return bytes
}

const SEPT_VE_DISABLE = 1n << 28n

async function checkQuote(policy: QuotePolicy, options: Partial<SimulatedQuoteOptions> = {}) {
  const quote = simulator.quote({ reportData, mrtd, rtmrs, ...options })
  assertQuotePolicy(await verifier.verifyQuote({ quote, collateral: simulator.collateral(), at }), policy)
}

async function checkReport(policy: ReportPolicy, options: Partial<SimulatedReportOptions> = {}) {
  const { signingKey, chipId: chip } = options
  const certificates = simulator.certificates({
    ...(signingKey === undefined ? {} : { signingKey }),
    ...(chip === undefined ? {} : { chipId: chip }),
  })
  const report = simulator.report({ reportData, measurement: mrtd, ...options })
  assertReportPolicy(await verifier.verifyReport({ report, certificates, at }), policy)
}

describe('quote policy', () => {
  test('accepts an up-to-date production TD by default, with or without zero padding', async () => {
    await checkQuote({})
    await checkQuote({}, { trailing: new Uint8Array(70) })
  })

  const refused: [string, Partial<SimulatedQuoteOptions>, PolicyErrorCode][] = [
    ['a debug TD', { tdAttributes: attributes(SEPT_VE_DISABLE | 1n) }, 'debug_enabled'],
    ['SEPT_VE_DISABLE clear', { tdAttributes: attributes(0n) }, 'sept_ve_disable_clear'],
    ['a migratable TD', { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 29n)) }, 'attributes_not_allowed'],
    ['performance counters', { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 63n)) }, 'attributes_not_allowed'],
    ['a platform agent', { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 62n)) }, 'attributes_not_allowed'],
    ['a reserved attribute', { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 40n)) }, 'attributes_not_allowed'],
    [
      'a reserved attribute of the debug group',
      { tdAttributes: attributes(SEPT_VE_DISABLE | 2n) },
      'attributes_not_allowed',
    ],
    ['a reserved XFAM bit', { xfam: attributes(0x3n | (1n << 40n)) }, 'attributes_not_allowed'],
    ['XFAM without SSE', { xfam: attributes(0x1n) }, 'attributes_not_allowed'],
    ['a bound service TD', { version: 5, mrServiceTd: new Uint8Array(48).fill(1) }, 'service_td_bound'],
    ['bytes after the quote', { trailing: new Uint8Array([0, 0, 7]) }, 'trailing_bytes'],
    ['a platform out of date', { status: 'OutOfDate' }, 'tcb_status_not_accepted'],
    ['a platform that needs hardening', { status: 'SWHardeningNeeded' }, 'tcb_status_not_accepted'],
    ['a TD to relaunch', { status: 'TDRelaunchAdvised' }, 'tcb_status_not_accepted'],
  ]
  test.each(refused)('rejects by default: %s', async (_, options, code) => {
    await expect(checkQuote({}, options)).rejects.toMatchObject({ name: 'PolicyError', code })
  })

  test('accepts statuses, SEPT_VE, migration, counters and agents that the policy allows', async () => {
    await checkQuote({ statuses: ['UpToDate', 'OutOfDate'] }, { status: 'OutOfDate' })
    await checkQuote({ allowSeptVe: true }, { tdAttributes: attributes(0n) })
    await checkQuote({ allowMigratable: true }, { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 29n)) })
    await checkQuote({ allowPerfmon: true }, { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 63n)) })
    await checkQuote({ allowTpa: true }, { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 62n)) })
    await checkQuote({}, { tdAttributes: attributes(SEPT_VE_DISABLE | (1n << 30n)) })
  })

  test('replaces the default with a list of statuses', async () => {
    await expect(checkQuote({ statuses: ['OutOfDate'] })).rejects.toMatchObject({ code: 'tcb_status_not_accepted' })
  })

  test('requires all named registers of one measurement', async () => {
    await checkQuote({ measurements: [{ mrTd: hex(9) }, { mrTd: hex(1) }] })
    await checkQuote({ measurements: [{ mrTd: hex(1), rtmr0: hex(2), rtmr1: hex(3), rtmr2: hex(4), rtmr3: hex(5) }] })
    for (const measurement of [
      { mrTd: hex(9) },
      { mrTd: hex(1), rtmr0: hex(9) },
      { mrTd: hex(1), rtmr1: hex(9) },
      { mrTd: hex(1), rtmr2: hex(9) },
      { mrTd: hex(1), rtmr3: hex(9) },
      { mrTd: hex(1), mrConfigId: hex(9) },
      { mrTd: hex(1), mrOwner: hex(9) },
      { mrTd: hex(1), mrOwnerConfig: hex(9) },
    ]) {
      await expect(checkQuote({ measurements: [measurement] })).rejects.toMatchObject({
        code: 'measurement_not_allowed',
      })
    }
  })

  test('requires report data, platform and evaluation number', async () => {
    await checkQuote({ reportData, platforms: [{ fmspc: 'f0c06f000000' }], minimumTcbEvaluationDataNumber: 20 })
    await expect(checkQuote({ reportData: new Uint8Array(64) })).rejects.toMatchObject({ code: 'report_data_mismatch' })
    await expect(checkQuote({ reportData: reportData.subarray(0, 63) })).rejects.toMatchObject({
      code: 'report_data_mismatch',
    })
    await expect(checkQuote({ platforms: [{ fmspc: '00806f050000' }] })).rejects.toMatchObject({
      code: 'platform_not_allowed',
    })
    await expect(checkQuote({ minimumTcbEvaluationDataNumber: 21 })).rejects.toMatchObject({
      code: 'tcb_evaluation_too_old',
    })
  })

  test('matches a machine by each of its identities, and only by the same kind', async () => {
    const quote = simulator.quote({ reportData, mrtd, rtmrs })
    const verified = await verifier.verifyQuote({ quote, collateral: simulator.collateral(), at })
    const { fmspc, ppid, platformInstanceId = '' } = verified.platform
    for (const platform of [{ fmspc }, { ppid }, { platformInstanceId }]) {
      assertQuotePolicy(verified, { platforms: [{ ppid: hex(9, 16) }, platform] })
    }
    for (const platform of [{ ppid: platformInstanceId }, { platformInstanceId: ppid }, { ppid: hex(0, 16) }]) {
      expect(() => assertQuotePolicy(verified, { platforms: [platform] })).toThrow(
        expect.objectContaining({ code: 'platform_not_allowed' }),
      )
    }
    const single = { ...verified, platform: { ...verified.platform, platformInstanceId: undefined } }
    expect(() => assertQuotePolicy(single, { platforms: [{ platformInstanceId }] })).toThrow(
      expect.objectContaining({ code: 'platform_not_allowed' }),
    )
  })

  test.each<[string, QuotePolicy]>([
    ['no measurements', { measurements: [] }],
    ['no statuses', { statuses: [] }],
    ['no platforms', { platforms: [] }],
    ['a platform as text', { platforms: ['f0c06f000000' as never] }],
    ['a platform with two identities', { platforms: [{ fmspc: 'f0c06f000000', ppid: hex(1, 16) }] }],
    ['no payloads', { events: { 'compose-hash': [] } }],
    ['upper case', { measurements: [{ mrTd: hex(0xab).toUpperCase() }] }],
    ['a short measurement', { measurements: [{ mrTd: hex(1, 47) }] }],
  ])('rejects a faulty policy: %s', async (_, policy) => {
    await expect(checkQuote(policy)).rejects.toMatchObject({ code: 'policy_invalid' })
  })
})

describe('report policy', () => {
  test('accepts a production guest at VMPL 0 with its chip’s key by default', async () => {
    await checkReport({})
    await checkReport({ reportData, measurements: [hex(9), hex(1)], minimumTcb: { Milan: {} } })
    await checkReport({ measurements: [`${hex(1)}:${hex(0, 32)}`], chips: [toHex(chipId)] }, { chipId })
  })

  const refused: [string, Partial<SimulatedReportOptions>, PolicyErrorCode][] = [
    ['a debug guest', { policy: 0xb0000n }, 'debug_enabled'],
    ['a migration agent', { policy: 0x70000n }, 'migration_enabled'],
    ['an undefined policy bit', { policy: 0x4030000n }, 'attributes_not_allowed'],
    ['VMPL 1', { vmpl: 1 }, 'vmpl_not_allowed'],
    ['a VLEK', { signingKey: 'vlek' }, 'signing_key_not_allowed'],
    ['memory that was not checked for aliases', { platformInfo: 0x05n }, 'alias_check_missing'],
    [
      'a report of version 2, which cannot state that check',
      { version: 2, platformInfo: 0x21n },
      'alias_check_missing',
    ],
  ]
  test.each(refused)('rejects by default: %s', async (_, options, code) => {
    await expect(checkReport({}, options)).rejects.toMatchObject({ name: 'PolicyError', code })
  })

  test('accepts privilege levels, VLEKs, migration agents and unchecked memory that the policy allows', async () => {
    await checkReport({ vmpls: [0, 1] }, { vmpl: 1 })
    await checkReport({ signingKeys: ['VLEK'] }, { signingKey: 'vlek' })
    await checkReport({ allowMigrationAgent: true }, { policy: 0x70000n })
    await checkReport({ allowUncheckedAliases: true }, { version: 2 })
  })

  test.each<[string, ReportPolicy, PolicyErrorCode]>([
    ['measurement', { measurements: [hex(9)] }, 'measurement_not_allowed'],
    ['report data', { reportData: new Uint8Array(64) }, 'report_data_mismatch'],
    ['product', { minimumTcb: { Genoa: {} } }, 'platform_not_allowed'],
    ['patch level', { minimumTcb: { Milan: { snp: 255 } } }, 'tcb_too_old'],
    ['empty list', { vmpls: [] }, 'policy_invalid'],
    ['malformed measurement', { measurements: ['zz'] }, 'policy_invalid'],
    ['HOST_DATA', { measurements: [`${hex(1)}:${hex(1, 32)}`] }, 'measurement_not_allowed'],
    ['length of HOST_DATA', { measurements: [`${hex(1)}:${hex(0, 31)}`] }, 'policy_invalid'],
    ['chip', { chips: [hex(1, 64)] }, 'chip_not_allowed'],
    ['length of a chip', { chips: [hex(1, 8)] }, 'policy_invalid'],
    ['empty list of chips', { chips: [] }, 'policy_invalid'],
  ])('rejects another %s', async (_, policy, code) => {
    await expect(checkReport(policy)).rejects.toMatchObject({ code })
  })
  test('rejects an empty list of measurements', async () => {
    const report = simulator.report({ reportData, measurement: mrtd })
    const verified = await verifier.verifyReport({ report, certificates: simulator.certificates({}), at })
    const refused = expect.objectContaining({ name: 'PolicyError', code: 'policy_invalid' })
    expect(() => assertLaunch(verified, [])).toThrow(refused)
    expect(() => assertReportPolicy(verified, { measurements: [] })).toThrow(refused)
  })

  const asHardware = createVerifier({ roots: [{ ...simulator.amdRoot, mode: 'hardware' }] })
  const judgeMilan = async (policy: ReportPolicy, signingKey: 'vcek' | 'vlek' = 'vcek') => {
    const chip = signingKey === 'vlek' ? {} : { chipId }
    const report = simulator.report({ reportData, measurement: mrtd, signingKey, ...chip })
    const certificates = simulator.certificates({ signingKey, ...chip })
    const verified = await asHardware.verifyReport({ report, certificates, at })
    assertReportPolicy(verified, { signingKeys: ['VCEK', 'VLEK'], ...policy })
  }

  test('accepts a Milan under AMD’s own root only if it is listed', async () => {
    await judgeMilan({ chips: [hex(1, 64), toHex(chipId)] })
    await expect(judgeMilan({})).rejects.toMatchObject({ name: 'PolicyError', code: 'chip_not_listed' })
    await expect(judgeMilan({ chips: [hex(1, 64)] })).rejects.toMatchObject({ code: 'chip_not_allowed' })
  })

  test('matches no chip for a VLEK', async () => {
    await expect(judgeMilan({}, 'vlek')).rejects.toMatchObject({ code: 'chip_not_listed' })
    await expect(judgeMilan({ chips: [hex(0, 64)] }, 'vlek')).rejects.toMatchObject({ code: 'chip_not_named' })
  })
})
