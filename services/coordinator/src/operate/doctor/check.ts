import type { Env, SettingFault } from '@countersign/service'
import type { Config } from '../../config.ts'
import type { PipelineConfig } from '../../publish/config.ts'
import type { Clock } from '../../system.ts'
import type { CheckName } from './names.ts'
import type { Times } from './times.ts'

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
  /** Undefined of a worker. */
  coordinator: Config | undefined
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
  /** Ends something when all checks are over. */
  onEnd(end: () => Promise<unknown>): void
}

export const ok = (text: string): Finding => ({ state: 'ok', text })
export const warning = (text: string, mend: string): Finding => ({ state: 'warning', text, mend })
export const fault = (text: string, mend: string): Finding => ({ state: 'fault', text, mend })
export const skipped = (why: string): Finding => ({ state: 'skipped', text: why })
