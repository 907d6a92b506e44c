/** Intel's verdicts on a platform's patch level and configuration. Without `Revoked`, which the verifier always rejects. */
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
