import { type Env, readMode } from '@countersign/service'
import { inspectConfig } from '../../config.ts'
import { inspectWorkerConfig } from '../../publish/config.ts'
import type { Clock } from '../../system.ts'
import { type Check, type Context, type NamedFinding, type Subject, skipped } from './check.ts'
import type { DatabaseView } from './database.ts'
import type { EnclaveView } from './enclave.ts'
import { type CheckName, checkNames } from './names.ts'
import { runChecks } from './runChecks.ts'
import { createTimedFetch, createTimes } from './times.ts'

export type ExamineDeps = {
  env: Env
  clock: Clock
  fetch: typeof globalThis.fetch
  readFile(path: string): string
  version: string
}

export type ExamineParameters = {
  role: Subject['role']
  /** Undefined: all. */
  only: readonly CheckName[] | undefined
  /** For each check. */
  timeoutMs: number
}

/** Looks at a configuration and at all that it names, with the parts that the service itself is made of. It changes nothing. */
export async function examine(deps: ExamineDeps, parameters: ExamineParameters): Promise<NamedFinding[]> {
  const { role, only, timeoutMs } = parameters
  const { env, clock } = deps
  const times = createTimes()
  const ends: (() => Promise<unknown>)[] = []
  const context: Context = {
    env,
    subject: readSubject(deps, role),
    clock,
    fetch: createTimedFetch(deps.fetch, { clock, times }),
    times,
    timeoutMs,
    onEnd: (end) => void ends.push(end),
  }
  const asked = checkNames.filter((name) => only?.includes(name) ?? true)
  const checks = select(await loadChecks(context, asked), asked)
  const found = await runChecks({ checks, faults: context.subject.faults, timeoutMs })
  // What does not end by itself ends with the process.
  void Promise.allSettled(ends.map(async (end) => end()))
  // A worker has less to look at; who asks for the rest by name is told so.
  const absent = (only ?? []).filter((name) => !checks.some((check) => check.name === name))
  return [
    ...found.filter(({ name, state }) => asked.includes(name) || state === 'fault'),
    ...absent.map((name) => ({ name, ...skipped(`a ${role} has none`) })),
  ]
}

function readSubject({ env, readFile, version }: ExamineDeps, role: Subject['role']): Subject {
  const isProduction = readMode(env) === 'production'
  if (role === 'worker') {
    const { config: pipeline, ...rest } = inspectWorkerConfig(env, { readFile })
    return { role, isProduction, pipeline, coordinator: undefined, ...rest }
  }
  const { config, faults } = inspectConfig(env, { readFile, version })
  const { databaseUrl, dataDir, pipeline } = config
  return { role, isProduction, faults, databaseUrl, dataDir, pipeline, coordinator: config }
}

/** Only the families that are asked for: a look at the settings alone loads neither database nor chain. */
async function loadChecks(context: Context, asked: readonly CheckName[]): Promise<Check[]> {
  const isAsked = (...names: CheckName[]) => names.some((name) => asked.includes(name))
  const found: Check[] = []
  let database: DatabaseView = {
    collateralCache: { load: async () => undefined, async save() {} },
    findPinnedCid: async () => undefined,
  }
  let enclave: EnclaveView = { terms: () => [] }
  if (isAsked('configuration', 'secrets', 'publishing')) {
    found.push(...(await import('./configuration.ts')).createConfigurationChecks(context))
  }
  if (isAsked('node', 'data-directory', 'disk')) {
    found.push(...(await import('./machine.ts')).createMachineChecks(context))
  }
  if (isAsked('database', 'database-tls', 'schema')) {
    const family = (await import('./database.ts')).createDatabaseChecks(context)
    database = family.view
    found.push(...family.checks)
  }
  if (context.subject.role === 'coordinator') {
    if (isAsked('policy')) found.push(...(await import('./policy.ts')).createPolicyChecks(context))
    if (isAsked('report', 'enclave', 'enclave-settings', 'collateral')) {
      const family = (await import('./enclave.ts')).createEnclaveChecks(context, database)
      enclave = family.view
      found.push(...family.checks)
    }
    if (isAsked('entropy')) found.push(...(await import('./entropy.ts')).createEntropyChecks(context))
    if (isAsked('sign-in')) found.push(...(await import('./signIn.ts')).createSignInChecks(context))
    if (isAsked('tls', 'cookies', 'origins', 'proxies')) {
      found.push(...(await import('./web.ts')).createWebChecks(context))
    }
    if (isAsked('log')) found.push(...(await import('./log.ts')).createLogChecks(context, enclave))
  }
  if (isAsked('pins')) found.push(...(await import('./pins.ts')).createPinsChecks(context, database))
  if (isAsked('chain', 'balance', 'chain-head')) {
    found.push(...(await import('./chain.ts')).createChainChecks(context))
  }
  if (isAsked('clock')) found.push(...(await import('./clock.ts')).createClockChecks(context))
  return found.toSorted((left, right) => checkNames.indexOf(left.name) - checkNames.indexOf(right.name))
}

/** Those that are asked for, and those that they need or use. */
function select(all: readonly Check[], asked: readonly CheckName[]): Check[] {
  const wanted = new Set<CheckName>(asked)
  // Each comes after those.
  for (const { name, needs = [], uses = [] } of all.toReversed()) {
    if (wanted.has(name)) for (const other of [...needs, ...uses]) wanted.add(other)
  }
  return all.filter(({ name }) => wanted.has(name))
}
