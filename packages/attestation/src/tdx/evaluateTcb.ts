import { equalBytes, isZero, type TcbStatus } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'
import { readTdxModule, type TdReport } from './parseQuote.ts'
import type { PckPlatform } from './pckCertificate.ts'
import type { IsvSvnLevel, TcbInfo, TcbLevel, TdxModuleIdentity } from './tcbInfo.ts'

type PlatformStatus = Exclude<TcbStatus, `TDRelaunch${string}`> | 'Revoked'
type IsvSvnStatus = 'UpToDate' | 'OutOfDate' | 'Revoked'

export type TcbEvaluation = { status: TcbStatus; advisoryIds: readonly string[]; tcbDate: number }

const PLATFORM_STATUSES: readonly string[] = [
  'UpToDate',
  'SWHardeningNeeded',
  'ConfigurationNeeded',
  'ConfigurationAndSWHardeningNeeded',
  'OutOfDate',
  'OutOfDateConfigurationNeeded',
  'Revoked',
] satisfies PlatformStatus[]

const OUT_OF_DATE_QE = ['OutOfDate', 'OutOfDateConfigurationNeeded', 'ConfigurationNeeded']

/** The SVNs of the TD, of the platform (from its PCK certificate) and of the quoting enclave. */
export type TcbSubject = { body: TdReport; platform: PckPlatform; qeIsvSvn: number }

/**
 * The TCB status, from the levels of platform, TDX module and quoting enclave (evidence.md, sections 6.3 and 6.4; Intel's QVL
 * 4.1.2.4.17, `checkTcbLevel`). The steps are in Intel's order.
 */
export function evaluateTcb(subject: TcbSubject, tcbInfo: TcbInfo, qeLevels: readonly IsvSvnLevel[]): TcbEvaluation {
  const { body, platform } = subject
  const module = findModuleIdentity(tcbInfo, body.teeTcbSvn)
  assertModuleMatches(body, module ?? tcbInfo.tdxModule)

  const sgxLevel = tcbInfo.tcbLevels.find((level) => coversSgx(level, platform))
  const tdxLevel = tcbInfo.tcbLevels.find((level) => coversSgx(level, platform) && coversTdx(level, body.teeTcbSvn))
  if (sgxLevel === undefined || tdxLevel === undefined) throw notSupported('no TCB level matches the platform')
  const moduleLevel = module && findIsvSvnLevel(module.tcbLevels, svn(body.teeTcbSvn, 0), 'the TDX module')
  const qeLevel = findIsvSvnLevel(qeLevels, subject.qeIsvSvn, 'the quoting enclave')

  const sgxStatus = toPlatformStatus(sgxLevel.status)
  const moduleStatus = moduleLevel === undefined ? 'UpToDate' : toModuleStatus(moduleLevel.status)
  const qeStatus = toQeStatus(qeLevel.status)
  const tdxStatus = converge(toPlatformStatus(tdxLevel.status), moduleStatus)
  if (tdxStatus === 'Revoked' || qeStatus === 'Revoked') throw new QuoteError('tcb_revoked', 'TCB revoked')

  const advised = isRelaunchAdvised({ body, tcbInfo, sgxStatus, tdxStatus, moduleStatus, qeStatus })
  const needsConfiguration = isConfigurationNeeded(sgxStatus) || isConfigurationNeeded(tdxStatus)
  const relaunch = needsConfiguration ? 'TDRelaunchAdvisedConfigurationNeeded' : 'TDRelaunchAdvised'
  return {
    status: advised ? relaunch : (converge(tdxStatus, qeStatus) as TcbStatus),
    advisoryIds: [
      ...new Set([...tdxLevel.advisoryIds, ...(moduleLevel?.advisoryIds ?? []), ...qeLevel.advisoryIds]),
    ].toSorted(),
    tcbDate: tdxLevel.tcbDate,
  }
}

/** TCB info must have an identity for a module with a version. */
function findModuleIdentity(tcbInfo: TcbInfo, teeTcbSvn: Uint8Array): TdxModuleIdentity | undefined {
  const { id } = readTdxModule(teeTcbSvn)
  if (id === undefined) return undefined
  const identity = tcbInfo.tdxModuleIdentities.find((candidate) => candidate.id === id)
  if (identity === undefined) throw moduleMismatch(`TCB info does not know module ${id}`)
  return identity
}

/** QVL 4.1.2.4.11: MRSIGNERSEAM is Intel's value, and the attributes in report and identity are zero. */
function assertModuleMatches(body: TdReport, module: { mrSigner: Uint8Array; attributes: Uint8Array }) {
  if (!equalBytes(body.mrSignerSeam, module.mrSigner)) throw moduleMismatch('MRSIGNERSEAM')
  if (!isZero(body.seamAttributes) || !isZero(module.attributes)) throw moduleMismatch('SEAMATTRIBUTES')
}

function coversSgx(level: TcbLevel, platform: PckPlatform): boolean {
  return (
    level.sgxComponents.every((minimum, index) => (platform.components[index] ?? -1) >= minimum) &&
    platform.pceSvn >= level.pceSvn
  )
}

/** For a module with a version, components 0 and 1 are its SVN and version: the module identity has levels for them. */
function coversTdx(level: TcbLevel, teeTcbSvn: Uint8Array): boolean {
  const first = svn(teeTcbSvn, 1) > 0 ? 2 : 0
  return level.tdxComponents.every((minimum, index) => index < first || svn(teeTcbSvn, index) >= minimum)
}

function findIsvSvnLevel(levels: readonly IsvSvnLevel[], isvSvn: number, what: string): IsvSvnLevel {
  const level = levels.find((candidate) => isvSvn >= candidate.isvSvn)
  if (level === undefined) throw notSupported(`no TCB level matches ${what}`)
  return level
}

/** An outdated module or quoting enclave makes the whole outdated; a revoked one revokes it. */
function converge(platform: PlatformStatus, part: IsvSvnStatus): PlatformStatus {
  if (part === 'Revoked') return 'Revoked'
  if (part === 'UpToDate') return platform
  if (platform === 'UpToDate' || platform === 'SWHardeningNeeded') return 'OutOfDate'
  if (platform === 'ConfigurationNeeded' || platform === 'ConfigurationAndSWHardeningNeeded') {
    return 'OutOfDateConfigurationNeeded'
  }
  return platform
}

/**
 * QVL `checkForRelaunch`: the host updated the module while the TD was running, so that a relaunch would bring the TD up to date.
 * TDX 1.5 reports the module's present SVNs in TEE_TCB_SVN_2 (body offset 584).
 */
function isRelaunchAdvised(input: {
  body: TdReport
  tcbInfo: TcbInfo
  sgxStatus: PlatformStatus
  tdxStatus: PlatformStatus
  moduleStatus: IsvSvnStatus
  qeStatus: IsvSvnStatus
}): boolean {
  const { teeTcbSvn2 } = input.body
  const latest = input.tcbInfo.tcbLevels[0]
  if (teeTcbSvn2 === undefined || latest === undefined || input.qeStatus !== 'UpToDate') return false
  const isSgxCurrent = !input.sgxStatus.startsWith('OutOfDate') && input.sgxStatus !== 'Revoked'
  const isTdxOutOfDate = input.tdxStatus.startsWith('OutOfDate')
  if (!isSgxCurrent || !isTdxOutOfDate || input.moduleStatus !== 'OutOfDate') return false
  const module = findModuleIdentity(input.tcbInfo, teeTcbSvn2)
  const latestModuleSvn = module === undefined ? latest.tdxComponents[0] : module.tcbLevels[0]?.isvSvn
  const latestComponent = latest.tdxComponents[2]
  if (latestModuleSvn === undefined || latestComponent === undefined) return false
  return svn(teeTcbSvn2, 0) >= latestModuleSvn && svn(teeTcbSvn2, 2) >= latestComponent
}

function isConfigurationNeeded(status: PlatformStatus): boolean {
  return status.includes('Configuration')
}

function toPlatformStatus(status: string): PlatformStatus {
  if (!PLATFORM_STATUSES.includes(status)) throw notSupported(`unknown TCB status ${status}`)
  return status as PlatformStatus
}

function toModuleStatus(status: string): IsvSvnStatus {
  if (status === 'UpToDate' || status === 'OutOfDate' || status === 'Revoked') return status
  throw notSupported(`unknown TDX module status ${status}`)
}

/** QVL `EnclaveReportVerifier`: any status between up to date and revoked counts as out of date. */
function toQeStatus(status: string): IsvSvnStatus {
  if (status === 'UpToDate' || status === 'Revoked') return status
  if (OUT_OF_DATE_QE.includes(status)) return 'OutOfDate'
  throw notSupported(`unknown QE status ${status}`)
}

function svn(bytes: Uint8Array, index: number): number {
  return bytes[index] ?? 0
}

function notSupported(details: string) {
  return new QuoteError('tcb_not_supported', 'TCB not supported', { details })
}

function moduleMismatch(details: string) {
  return new QuoteError('tdx_module_mismatch', 'not the expected TDX module', { details })
}
