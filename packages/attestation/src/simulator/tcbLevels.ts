/*
 * The TCB levels of the simulated platform, one for each status, so that one set of collateral gives every status: a quote has the
 * security version numbers (SVNs) of the chosen level. Levels descend, as in Intel's TCB info. The first level applies whose
 * numbers are all at most those of the platform.
 */

/** The status that a verifier should find for a platform. The names are Intel's. */
export type SimulatedTcbStatus = PlatformStatus | RelaunchStatus | 'NotSupported'

type PlatformStatus =
  | 'UpToDate'
  | 'SWHardeningNeeded'
  | 'ConfigurationNeeded'
  | 'ConfigurationAndSWHardeningNeeded'
  | 'OutOfDate'
  | 'OutOfDateConfigurationNeeded'
  | 'Revoked'

type RelaunchStatus = 'TDRelaunchAdvised' | 'TDRelaunchAdvisedConfigurationNeeded'

/** The status of a part with one SVN: the quoting enclave or the TDX module. `NotSupported` is below every level. */
export type SimulatedPartStatus = 'UpToDate' | 'OutOfDate' | 'Revoked' | 'NotSupported'

export type PlatformLevel = {
  status: PlatformStatus
  /** SGX components 1 and 2 and TDX component 3 (microcode). */
  svn: number
  /** TDX component 1. It counts only for module version 0. Later modules have levels in their identities. */
  moduleSvn: number
  pceSvn: number
  date: string
  advisories: readonly string[]
}

export type PartLevel = {
  status: Exclude<SimulatedPartStatus, 'NotSupported'>
  svn: number
  date: string
  advisories: readonly string[]
}

const LATEST = '2025-05-14T00:00:00Z'
const EARLIER = '2024-03-13T00:00:00Z'
const EARLIEST = '2018-01-04T00:00:00Z'

export const platformLevels = [
  { status: 'UpToDate', svn: 9, moduleSvn: 5, pceSvn: 13, date: LATEST, advisories: [] },
  { status: 'SWHardeningNeeded', svn: 8, moduleSvn: 5, pceSvn: 13, date: LATEST, advisories: ['MOCK-SA-00102'] },
  { status: 'ConfigurationNeeded', svn: 7, moduleSvn: 5, pceSvn: 13, date: LATEST, advisories: ['MOCK-SA-00103'] },
  {
    status: 'ConfigurationAndSWHardeningNeeded',
    svn: 6,
    moduleSvn: 5,
    pceSvn: 13,
    date: LATEST,
    advisories: ['MOCK-SA-00104'],
  },
  { status: 'OutOfDate', svn: 5, moduleSvn: 4, pceSvn: 11, date: EARLIER, advisories: ['MOCK-SA-00105'] },
  {
    status: 'OutOfDateConfigurationNeeded',
    svn: 4,
    moduleSvn: 4,
    pceSvn: 11,
    date: EARLIER,
    advisories: ['MOCK-SA-00106'],
  },
  { status: 'Revoked', svn: 3, moduleSvn: 2, pceSvn: 5, date: EARLIEST, advisories: ['MOCK-SA-00107'] },
] as const satisfies readonly PlatformLevel[]

/** The levels of the module identities TDX_01 and TDX_03. */
export const moduleLevels = [
  { status: 'UpToDate', svn: 11, date: LATEST, advisories: [] },
  { status: 'OutOfDate', svn: 7, date: EARLIER, advisories: ['MOCK-SA-00202'] },
  { status: 'Revoked', svn: 5, date: EARLIEST, advisories: ['MOCK-SA-00203'] },
] as const satisfies readonly PartLevel[]

export const qeLevels = [
  { status: 'UpToDate', svn: 6, date: LATEST, advisories: [] },
  { status: 'OutOfDate', svn: 4, date: EARLIER, advisories: ['MOCK-SA-00302'] },
  { status: 'Revoked', svn: 2, date: EARLIEST, advisories: ['MOCK-SA-00303'] },
] as const satisfies readonly PartLevel[]

/** The SVNs of a platform with the given status. */
export function platformSvns(status: SimulatedTcbStatus): { svn: number; pceSvn: number } {
  if (status === 'TDRelaunchAdvised') return platformSvns('UpToDate')
  if (status === 'TDRelaunchAdvisedConfigurationNeeded') return platformSvns('ConfigurationNeeded')
  const { svn, pceSvn } = platformLevels.find((level) => level.status === status) ?? { svn: 1, pceSvn: 5 }
  return { svn, pceSvn }
}

/** The ISVSVN of a quoting enclave with the given status. */
export function qeSvn(status: SimulatedPartStatus): number {
  return qeLevels.find((level) => level.status === status)?.svn ?? 1
}

/** TEE_TCB_SVN: the module's SVN, its version, then the microcode's SVN. */
export function teeTcbSvn(module: { status: SimulatedPartStatus; version: number }, svn: number): Uint8Array {
  const level = moduleLevels.find(({ status }) => status === module.status)
  // The platform levels apply to a module of version 0.
  const platformLevel = platformLevels.find(({ status }) => status === module.status)
  const moduleSvn = module.version === 0 ? platformLevel?.moduleSvn : level?.svn
  const bytes = new Uint8Array(16)
  bytes.set([moduleSvn ?? 1, module.version, svn])
  return bytes
}

/** The 16 SGX components of a platform, and CPUSVN in its PCK certificate. */
export function sgxComponents(svn: number): readonly number[] {
  return [svn, svn, 2, 2, 4, 1, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0]
}

/** The 16 TDX components of a level. */
export function tdxComponents({ moduleSvn, svn }: PlatformLevel): readonly number[] {
  return [moduleSvn, 0, svn, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

export function isRelaunchStatus(status: SimulatedTcbStatus): status is RelaunchStatus {
  return status === 'TDRelaunchAdvised' || status === 'TDRelaunchAdvisedConfigurationNeeded'
}
