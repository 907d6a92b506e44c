/** Every check, in the order of the report, and what it looks at. */
export const checks = {
  configuration: 'the settings; all faults at once',
  secrets: 'who else can read the secrets’ files',
  node: 'the version of Node',
  'data-directory': 'whether it can be written to',
  disk: 'free space in the data directory',
  database: 'whether it answers, to whom',
  'database-tls': 'whether the way to it is encrypted',
  schema: 'whether it is of this release',
  policy: 'the enclave policy: placeholders, registers left out',
  report: 'the coordinator’s own report',
  enclave: 'each enclave: reached, attested, accepted by the policy',
  'enclave-settings': 'whether enclave and coordinator have the same providers, entropy and log',
  collateral: 'Intel’s collateral: how old, until when',
  entropy: 'one sample, verified; it is not used',
  'sign-in': 'each identity provider: metadata, client and redirect URI',
  publishing: 'who publishes the proofs',
  pins: 'the pin service: credentials, and a block that it holds',
  chain: 'the chain, the contract and its publisher',
  balance: 'how many publications the publisher can pay for',
  'chain-head': 'how old the newest block is',
  tls: 'the certificate of PUBLIC_URL',
  cookies: 'whether browsers send the session’s cookie',
  origins: 'the pages that may call with the session',
  proxies: 'whose X-Forwarded-For is believed',
  log: 'the witnesses of the enclaves’ logs',
  clock: 'this machine’s clock against all that answered',
} as const

export type CheckName = keyof typeof checks
export const checkNames = Object.keys(checks) as CheckName[]
