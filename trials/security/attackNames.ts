/** In the order in which they are made: those that restart the coordinator come last. */
export const attackNames = [
  'abuse-matrix',
  'header-floods',
  'open-redirect',
  'log-injection',
  'slug-timing',
  'oversized-bodies',
  'slow-connections',
  'event-streams',
  'cookie-tossing',
  'vault-stolen-session',
  'vault-own-coordinator',
  'vault-second-enclave',
  'vault-old-database',
  'rate-limits',
] as const

export type AttackName = (typeof attackNames)[number]
