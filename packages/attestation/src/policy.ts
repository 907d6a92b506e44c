import {
  equalBytes,
  fromHex,
  isHex,
  isPlainObject,
  type TcbStatus,
  tcbStatuses,
  toHex,
} from '@countersign/protocol/core'
import {
  type AcceptedEvents,
  codeRegisters,
  findPlatform,
  isTdPlatform,
  readSnpMeasurement,
  type TdMeasurement,
  type TdPlatform,
  toTdMeasurement,
} from './codeRegisters.ts'
import { type Difference, PolicyError, type PolicyErrorCode } from './errors.ts'
import { type SnpProduct, type SnpTcb, snpTcbParts } from './snp/endorsementKey.ts'
import type { ParsedReport } from './snp/parseReport.ts'
import type { VerifiedReport } from './snp/verifyReport.ts'
import type { TdReport } from './tdx/parseQuote.ts'
import type { VerifiedQuote } from './tdx/verifyQuote.ts'

/**
 * The states of an enclave that a reader accepts (evidence.md, section 7). Every default is the strictest choice. Debug TDs, bound
 * service TDs, undefined bits and bytes other than zero after the quote are never accepted.
 */
export type QuotePolicy = {
  /** The 64 bytes that the quote must cover. */
  reportData?: Uint8Array
  /** Code to accept. Default: any code, so the reader knows only that the hardware is genuine. */
  measurements?: readonly TdMeasurement[]
  /**
   * Run-time events to accept, by name. The log must contain the event, and every payload of that name must be listed. For
   * dstack, `{ 'compose-hash': ['…'], 'app-id': ['…'], 'key-provider': ['…'] }` replaces RTMR3.
   */
  events?: AcceptedEvents
  /** Default: only `UpToDate`. */
  statuses?: readonly TcbStatus[]
  /** Intel's TCB evaluation data number. Older collateral is rejected, even if in date. */
  minimumTcbEvaluationDataNumber?: number
  /** Machines to accept. Default: any. */
  platforms?: readonly TdPlatform[]
  /** Accept a TD without SEPT_VE_DISABLE, for paravisors that handle the exceptions themselves. Default false. */
  allowSeptVe?: boolean
  /** Accept TDs that may be migrated, use performance counters, or are platform agents. Default false. */
  allowMigratable?: boolean
  allowPerfmon?: boolean
  allowTpa?: boolean
}

const STRICT_STATUSES: readonly TcbStatus[] = ['UpToDate']

/** Throws `PolicyError` at the first requirement of the policy that a genuine quote does not meet. */
export function assertQuotePolicy(verified: VerifiedQuote, policy: QuotePolicy = {}): void {
  const { flags, body, tcb, platform } = verified
  assertLists(policy.measurements, policy.statuses, policy.platforms, ...Object.values(policy.events ?? {}))
  refuseIf(flags.debug, 'debug_enabled', 'the TD can be debugged')
  refuseIf(!flags.septVeDisable && policy.allowSeptVe !== true, 'sept_ve_disable_clear', 'SEPT_VE_DISABLE is clear')
  refuseIf(flags.reservedBits, 'attributes_not_allowed', 'undefined attribute bits are set')
  refuseIf(flags.migratable && policy.allowMigratable !== true, 'attributes_not_allowed', 'the TD may be migrated')
  refuseIf(flags.perfmon && policy.allowPerfmon !== true, 'attributes_not_allowed', 'the TD uses performance counters')
  refuseIf(flags.tpa && policy.allowTpa !== true, 'attributes_not_allowed', 'the TD is a platform agent')
  refuseIf(flags.serviceTd, 'service_td_bound', 'a service TD is bound')
  refuseIf(!flags.trailingZero, 'trailing_bytes', 'bytes after the quote are not zero')
  refuseIf(
    !(policy.statuses ?? STRICT_STATUSES).includes(tcb.status),
    'tcb_status_not_accepted',
    'TCB status',
    tcb.status,
  )
  refuseIf(
    tcb.evaluationDataNumber < (policy.minimumTcbEvaluationDataNumber ?? 0),
    'tcb_evaluation_too_old',
    'TCB evaluation data too old',
    String(tcb.evaluationDataNumber),
  )
  if (policy.platforms !== undefined) {
    refuseIf(!policy.platforms.every(isTdPlatform), 'policy_invalid', 'a platform of the policy is malformed')
    const isListed = findPlatform(platform, policy.platforms) !== undefined
    refuseIf(
      !isListed,
      'platform_not_allowed',
      'platform not allowed',
      `FMSPC ${platform.fmspc}, PPID ${platform.ppid}`,
    )
  }
  if (policy.measurements !== undefined) {
    const closest = findClosest(policy.measurements.map((allowed) => compareRegisters(body, allowed)))
    refuseDifferences(closest, 'measurement_not_allowed', 'measurement not allowed')
  }
  const otherEvents = Object.entries(policy.events ?? {}).flatMap(([name, expected]) => {
    const found = verified.events?.get(name) ?? []
    const isAllowed = found.length > 0 && found.every((payload) => expected.includes(payload))
    return isAllowed ? [] : [{ name, expected, found }]
  })
  refuseDifferences(otherEvents, 'event_not_allowed', 'runtime event not allowed')
  refuseIf(
    policy.reportData !== undefined && !equalBytes(policy.reportData, body.reportData),
    'report_data_mismatch',
    'the quote covers other data',
  )
}

/** Whether every register that a measurement names has the value that it names. */
export function isMeasuredAs(body: TdReport, allowed: TdMeasurement): boolean {
  return compareRegisters(body, allowed).length === 0
}

/** The registers whose value differs from the measurement. */
function compareRegisters(body: TdReport, allowed: TdMeasurement): Difference[] {
  const measured = toTdMeasurement(body)
  return codeRegisters.flatMap((name) => {
    const expected = allowed[name]
    if (expected === undefined || toHex(parseMeasurement(expected)) === measured[name]) return []
    return [{ name: name.toUpperCase(), expected: [expected], found: [measured[name]] }]
  })
}

/** The differences from the entry with the fewest differences. */
function findClosest(candidates: readonly Difference[][]): Difference[] {
  return candidates.toSorted((one, other) => one.length - other.length)[0] ?? []
}

/**
 * The states of a guest that a reader accepts (evidence.md, section 9.6). Every default is the strictest choice. Debuggable guests
 * are never accepted.
 */
export type ReportPolicy = {
  /** The 64 bytes that the report must cover. */
  reportData?: Uint8Array
  /**
   * Code to accept, as `MEASUREMENT:HOST_DATA` (48 and 32 bytes of lower-case hex). An entry without HOST_DATA accepts any.
   * Default: any code.
   */
  measurements?: readonly string[]
  /** Privilege levels to accept. Default: only 0. */
  vmpls?: readonly number[]
  /** Endorsement keys to accept. Default: only `VCEK`. A VLEK does not identify the chip. */
  signingKeys?: readonly ParsedReport['signingKey'][]
  /** Patch levels that reported, committed and launch TCB must all reach, by product. Other products are rejected. */
  minimumTcb?: Partial<Record<SnpProduct, Partial<SnpTcb>>>
  /**
   * Chips to accept, by their id (64 bytes of lower-case hex; the 8 bytes of a Turin are followed by zeros). Default: any, except
   * Milan under AMD's own root.
   */
  chips?: readonly string[]
  /** Accept guests that a migration agent may move. Default false. */
  allowMigrationAgent?: boolean
  /** Accept machines whose firmware did not check their memory for aliases (CVE-2024-21944) or cannot report it. Default false. */
  allowUncheckedAliases?: boolean
}

const STRICT_VMPLS: readonly number[] = [0]
const STRICT_SIGNING_KEYS: readonly ParsedReport['signingKey'][] = ['VCEK']

/** Throws `PolicyError` at the first requirement of the policy that a genuine report does not meet. */
export function assertReportPolicy(verified: VerifiedReport, policy: ReportPolicy = {}): void {
  const { body } = verified
  assertReportState(verified, policy)
  assertReportChip(verified, policy.chips)
  if (policy.measurements !== undefined) assertLaunch(verified, policy.measurements)
  refuseIf(
    policy.reportData !== undefined && !equalBytes(policy.reportData, body.reportData),
    'report_data_mismatch',
    'the report covers other data',
  )
}

/** Throws `PolicyError` unless the launch matches one of `measurements`. An entry without HOST_DATA accepts any HOST_DATA. */
export function assertLaunch({ body }: VerifiedReport, measurements: readonly string[]): void {
  assertLists(measurements)
  const found = { measurement: toHex(body.measurement), hostData: toHex(body.hostData) }
  const candidates = measurements.map((allowed) => {
    const expected = readSnpMeasurement(allowed)
    if (expected === undefined) {
      throw new PolicyError(
        'policy_invalid',
        'a measurement of the policy is not MEASUREMENT:HOST_DATA in lower-case hex',
      )
    }
    const { measurement, hostData = found.hostData } = expected
    return [
      { name: 'MEASUREMENT', expected: [measurement], found: [found.measurement] },
      { name: 'HOST_DATA', expected: [hostData], found: [found.hostData] },
    ].filter((register) => register.expected[0] !== register.found[0])
  })
  refuseDifferences(findClosest(candidates), 'measurement_not_allowed', 'measurement not allowed')
}

/** The part of a policy about the machine's state. It is independent of the machine's identity and code. */
export function assertReportState(
  verified: VerifiedReport,
  policy: Omit<ReportPolicy, 'measurements' | 'reportData' | 'chips'> = {},
): void {
  const { flags, body } = verified
  assertLists(policy.vmpls, policy.signingKeys)
  refuseIf(flags.debug, 'debug_enabled', 'the guest can be debugged')
  refuseIf(
    flags.migrationAgent && policy.allowMigrationAgent !== true,
    'migration_enabled',
    'a migration agent may move the guest',
  )
  refuseIf(flags.reservedBits, 'attributes_not_allowed', 'undefined policy bits are set')
  refuseIf(!(policy.vmpls ?? STRICT_VMPLS).includes(body.vmpl), 'vmpl_not_allowed', 'VMPL', String(body.vmpl))
  refuseIf(
    !(policy.signingKeys ?? STRICT_SIGNING_KEYS).includes(body.signingKey),
    'signing_key_not_allowed',
    'signing key not allowed',
    body.signingKey,
  )
  refuseIf(
    !flags.aliasCheckComplete && policy.allowUncheckedAliases !== true,
    'alias_check_missing',
    'the memory was not checked for aliases',
    body.version === 2 ? 'reports of version 2 cannot say it' : 'ALIAS_CHECK_COMPLETE is clear',
  )
  if (policy.minimumTcb !== undefined) assertMinimumTcb(verified, policy.minimumTcb)
}

/**
 * Throws unless the chip is listed. Software can extract the keys of a Milan (arXiv 2605.12990), so anyone who ever had one can sign
 * as it: a Milan passes only if the reader lists it. Simulated chips prove nothing, so they are exempt.
 */
export function assertReportChip({ body, product, root }: VerifiedReport, chips: readonly string[] | undefined): void {
  assertLists(chips)
  const chip = toHex(body.chipId)
  if (chips === undefined) {
    refuseIf(product === 'Milan' && root.mode === 'hardware', 'chip_not_listed', 'a Milan has to be listed', chip)
    return
  }
  refuseIf(!chips.every((listed) => isHex(listed, 64)), 'policy_invalid', 'a chip of the policy is not 64 bytes of hex')
  // Every machine of the provider has this key, so AMD does not certify the chip id in the report.
  refuseIf(body.signingKey === 'VLEK', 'chip_not_named', 'a VLEK names no chip')
  refuseIf(!chips.includes(chip), 'chip_not_allowed', 'chip not allowed', chip)
}

function assertMinimumTcb({ tcb, product }: VerifiedReport, minimums: NonNullable<ReportPolicy['minimumTcb']>) {
  const minimum = minimums[product]
  refuseIf(minimum === undefined, 'platform_not_allowed', 'platform not allowed', product)
  for (const version of [tcb.reported, tcb.committed, tcb.launch]) {
    for (const part of snpTcbParts) {
      refuseIf(version[part] < (minimum?.[part] ?? 0), 'tcb_too_old', 'TCB too old', `${part} ${version[part]}`)
    }
  }
}

/** An empty allow-list is a mistake: it could be read as accepting nothing or everything. */
function assertLists(...lists: (readonly unknown[] | undefined)[]) {
  refuseIf(
    lists.some((list) => list?.length === 0),
    'policy_invalid',
    'an allow-list of the policy is empty',
  )
}

function parseMeasurement(text: string): Uint8Array {
  try {
    const bytes = fromHex(text)
    if (bytes.length === 48) return bytes
  } catch {
    // The error below names the policy.
  }
  throw new PolicyError('policy_invalid', 'a measurement of the policy is not 48 bytes of lower-case hex')
}

function refuseIf(condition: boolean, code: PolicyErrorCode, message: string, details?: string) {
  if (condition) throw new PolicyError(code, message, details === undefined ? {} : { details })
}

function refuseDifferences(differences: readonly Difference[], code: PolicyErrorCode, message: string) {
  if (differences.length > 0) throw new PolicyError(code, message, { differences })
}

type MemberName = 'measurements' | 'events' | 'statuses' | 'minimumTcbEvaluationDataNumber' | 'platforms'

const REGISTERS: readonly string[] = codeRegisters

/** Checks of the members of a `QuotePolicy` that operators write as JSON. None accepts an empty list: its meaning is unclear. */
export const quotePolicyMembers: Readonly<Record<MemberName & keyof QuotePolicy, (value: unknown) => boolean>> = {
  measurements: (value) => isListOf(value, isMeasurement),
  statuses: (value) => isListOf(value, (status) => (tcbStatuses as readonly unknown[]).includes(status)),
  minimumTcbEvaluationDataNumber: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  platforms: (value) => isListOf(value, isTdPlatform),
  events: (value) =>
    isPlainObject(value) &&
    Object.keys(value).length > 0 &&
    Object.values(value).every((payloads) => isListOf(payloads, isPayload)),
}

/** A measurement without `mrTd`, or with a misspelt register, would accept any code. */
function isMeasurement(value: unknown): boolean {
  if (!isPlainObject(value) || !Object.hasOwn(value, 'mrTd')) return false
  return Object.entries(value).every(([name, register]) => REGISTERS.includes(name) && isHex(register, 48))
}

/** Payloads are compared as lower-case hex: another spelling would match no log. */
function isPayload(value: unknown): boolean {
  return value === '' || isHex(value)
}

function isListOf(value: unknown, isFine: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isFine)
}
