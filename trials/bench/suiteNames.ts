/** In the order in which they run: the short ones first. */
export const suiteNames = [
  'verification',
  'startup',
  'enclave',
  'sign',
  'vaults',
  'log',
  'signin',
  'reads',
  'memory',
  'pipeline',
  'restart',
  'growth',
] as const

export type SuiteName = (typeof suiteNames)[number]
