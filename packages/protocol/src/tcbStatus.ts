/** Intel's verdicts on a platform's patch level and configuration. `Revoked` is not among them: it never leaves the verifier. */
export const tcbStatuses = [
  'UpToDate',
  'SWHardeningNeeded',
  'ConfigurationNeeded',
  'ConfigurationAndSWHardeningNeeded',
  'OutOfDate',
  'OutOfDateConfigurationNeeded',
  'TDRelaunchAdvised',
  'TDRelaunchAdvisedConfigurationNeeded',
] as const

export type TcbStatus = (typeof tcbStatuses)[number]
