import type { Env, SettingFault } from '@countersign/service'
import type { Config } from '../../config.ts'
import type { PipelineConfig } from '../../publish/config.ts'
import type { Clock } from '../../system.ts'

/** For `skipped`, `text` gives the reason. */
export type State = 'ok' | 'warning' | 'fault' | 'skipped'

/** The result of a check and its fix, in one line each without secrets. */
export type Finding = { state: State; text: string; fix?: string }

export type NamedFinding = Finding & { name: CheckName }

export type Check = {
  name: CheckName
  /** The settings that the check reads. It is skipped if one of them is invalid. */
  settings?: RegExp
  /** Checks that must succeed first. */
  needs?: readonly CheckName[]
  /** Checks that run first, even if they fail. Selecting this check selects them too. */
  uses?: readonly CheckName[]
  /** Like `uses`, but doesn't select them. */
  after?: readonly CheckName[]
  /** Returns one finding per checked thing. If it throws, the finding is a fault without an explanation. */
  run(limits: { signal: AbortSignal }): Promise<Finding | readonly Finding[]>
}

/** The configuration to check, as far as it can be parsed. */
export type Subject = {
  role: 'coordinator' | 'worker'
  isProduction: boolean
  faults: readonly SettingFault[]
  databaseUrl: string
  dataDir: string
  /** Undefined if this process doesn't publish. */
  pipeline: PipelineConfig | undefined
  coordinator: Config | undefined
}

/** How far another clock is ahead of ours. */
export type SeenTime = { source: string; aheadMs: number; precisionMs: number }

export type Times = {
  /** `at` is their time at some moment between `from` and `until` on our clock. */
  note(parameters: { source: string; at: number; from: number; until: number; precisionMs: number }): void
  seen(): readonly SeenTime[]
}

/** Shared by all checks. */
export type Context = {
  env: Env
  subject: Subject
  clock: Clock
  /** Records the other side's time. */
  fetch: typeof globalThis.fetch
  times: Times
  timeoutMs: number
  onEnd(end: () => Promise<unknown>): void
}

export const ok = (text: string): Finding => ({ state: 'ok', text })
export const warning = (text: string, fix: string): Finding => ({ state: 'warning', text, fix })
export const fault = (text: string, fix: string): Finding => ({ state: 'fault', text, fix })
export const skipped = (why: string): Finding => ({ state: 'skipped', text: why })

/** Every check in the order of the report, with its description. */
export const checks = {
  configuration: 'whether the settings are valid; reports all faults at once',
  secrets: 'whether other users can read the secret files',
  node: 'the Node version',
  'data-directory': 'whether it is writable',
  disk: 'free space in the data directory',
  database: 'whether PostgreSQL accepts the connection',
  'database-tls': 'whether the connection is encrypted',
  schema: 'whether this release supports the schema',
  policy: 'the enclave policy: placeholders and missing registers',
  report: 'the coordinator’s own report',
  enclave: 'whether each enclave is reachable, attested and accepted by the policy',
  'enclave-settings': 'whether enclave and coordinator agree on providers, entropy and log',
  collateral: 'age and expiry of Intel’s collateral',
  entropy: 'fetches and verifies one sample, which isn’t used',
  'sign-in': 'each identity provider: metadata, client and redirect URI',
  publishing: 'which process publishes the proofs',
  pins: 'the pin service: its credentials, and reading a pinned block',
  chain: 'the chain, the contract and the publisher',
  checkpoints: 'the contract LogWitness, and the publisher of each log',
  balance: 'how many publications the publisher can pay for',
  'chain-head': 'the age of the newest block',
  tls: 'the certificate of PUBLIC_URL',
  cookies: 'whether browsers send the session cookie',
  origins: 'the pages that may use the session',
  proxies: 'the proxies whose X-Forwarded-For is trusted',
  log: 'the witnesses of the enclaves’ logs',
  clock: 'this machine’s clock, compared with the servers that answered',
} as const

export type CheckName = keyof typeof checks
export const checkNames = Object.keys(checks) as CheckName[]
