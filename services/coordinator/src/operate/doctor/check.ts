import type { Env, SettingFault } from '@countersign/service'
import type { Config } from '../../config.ts'
import type { PipelineConfig } from '../../publish/config.ts'
import type { Clock } from '../../system.ts'

/** `skipped`: it was not looked at, and `text` says why. */
export type State = 'ok' | 'warning' | 'fault' | 'skipped'

/** What was found, in one line, and how to mend it, in another. Neither holds a secret. */
export type Finding = { state: State; text: string; mend?: string }

export type NamedFinding = Finding & { name: CheckName }

export type Check = {
  name: CheckName
  /** The settings that it goes by: it is not run where one of them has a fault. */
  settings?: RegExp
  /** It is not run unless these went well. */
  needs?: readonly CheckName[]
  /** It is run with these, when they are over, however they ended. */
  uses?: readonly CheckName[]
  /** The same, of those that are run anyway. */
  after?: readonly CheckName[]
  /** Several where there are several things to look at. What it throws is a fault without an explanation. */
  run(limits: { signal: AbortSignal }): Promise<Finding | readonly Finding[]>
}

/** What is looked at: a configuration, as far as it can be read. */
export type Subject = {
  role: 'coordinator' | 'worker'
  isProduction: boolean
  faults: readonly SettingFault[]
  databaseUrl: string
  dataDir: string
  /** Undefined where this process does not publish. */
  pipeline: PipelineConfig | undefined
  coordinator: Config | undefined
}

/** What time somebody else has. */
export type SeenTime = { source: string; aheadMs: number; precisionMs: number }

export type Times = {
  /** `at` is a time of theirs, from some moment between the two of ours. */
  note(parameters: { source: string; at: number; from: number; until: number; precisionMs: number }): void
  seen(): readonly SeenTime[]
}

/** What the checks of a family share. */
export type Context = {
  env: Env
  subject: Subject
  clock: Clock
  /** Notes what time the other side has. */
  fetch: typeof globalThis.fetch
  times: Times
  timeoutMs: number
  onEnd(end: () => Promise<unknown>): void
}

export const ok = (text: string): Finding => ({ state: 'ok', text })
export const warning = (text: string, mend: string): Finding => ({ state: 'warning', text, mend })
export const fault = (text: string, mend: string): Finding => ({ state: 'fault', text, mend })
export const skipped = (why: string): Finding => ({ state: 'skipped', text: why })

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
