import { withinTimeLimit } from '@countersign/protocol'
import { type Env, readMode, type SettingFault } from '@countersign/service'
import { inspectConfig } from '../../config.ts'
import { inspectWorkerConfig } from '../../publish/config.ts'
import type { Clock } from '../../system.ts'
import {
  type Check,
  type CheckName,
  type Context,
  checkNames,
  type Finding,
  fault,
  type NamedFinding,
  type Subject,
  skipped,
} from './check.ts'
import { createTimedFetch, createTimes } from './clock.ts'
import type { DatabaseView } from './database.ts'
import type { EnclaveView } from './enclave.ts'
import { describeError } from './reasons.ts'

export type DiagnoseDeps = {
  env: Env
  clock: Clock
  fetch: typeof globalThis.fetch
  readFile(path: string): string
  version: string
}

type DiagnoseParameters = {
  role: Subject['role']
  only: readonly CheckName[] | undefined
  timeoutMs: number
}

/** Checks a configuration and everything that it names, with the service's own code. It changes nothing. */
export async function diagnose(deps: DiagnoseDeps, parameters: DiagnoseParameters): Promise<NamedFinding[]> {
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
  const selected = checkNames.filter((name) => only?.includes(name) ?? true)
  const checks = select(await loadChecks(context, selected), selected)
  const found = await runChecks({ checks, faults: context.subject.faults, timeoutMs })
  // Cleanup that hangs ends with the process.
  void Promise.allSettled(ends.map(async (end) => end()))
  // A worker has fewer checks. Checks that were selected by name but don't exist are reported as skipped.
  const absent = (only ?? []).filter((name) => !checks.some((check) => check.name === name))
  return [
    ...found.filter(({ name, state }) => selected.includes(name) || state === 'fault'),
    ...absent.map((name) => ({ name, ...skipped(`a ${role} has no such check`) })),
  ]
}

function readSubject({ env, readFile, version }: DiagnoseDeps, role: Subject['role']): Subject {
  const isProduction = readMode(env) === 'production'
  if (role === 'worker') {
    const { config: pipeline, ...rest } = inspectWorkerConfig(env, { readFile })
    return { role, isProduction, pipeline, coordinator: undefined, ...rest }
  }
  const { config, faults } = inspectConfig(env, { readFile, version })
  const { databaseUrl, dataDir, pipeline } = config
  return { role, isProduction, faults, databaseUrl, dataDir, pipeline, coordinator: config }
}

/** Loads only the selected families, so that a check of the settings loads neither database nor chain code. */
async function loadChecks(context: Context, selected: readonly CheckName[]): Promise<Check[]> {
  const isSelected = (...names: CheckName[]) => names.some((name) => selected.includes(name))
  const found: Check[] = []
  let database: DatabaseView = {
    collateralCache: { load: async () => undefined, async save() {} },
    findPinnedCid: async () => undefined,
    listOrigins: async () => [],
  }
  let enclave: EnclaveView = { terms: () => [] }
  if (isSelected('configuration', 'secrets', 'publishing', 'node', 'data-directory', 'disk', 'policy')) {
    found.push(...(await import('./settings.ts')).createSettingsChecks(context))
  }
  if (isSelected('database', 'database-tls', 'schema')) {
    const family = (await import('./database.ts')).createDatabaseChecks(context)
    database = family.view
    found.push(...family.checks)
  }
  if (context.subject.role === 'coordinator') {
    if (isSelected('report', 'enclave', 'enclave-settings', 'collateral')) {
      const family = (await import('./enclave.ts')).createEnclaveChecks(context, database)
      enclave = family.view
      found.push(...family.checks)
    }
    if (isSelected('entropy')) found.push(...(await import('./entropy.ts')).createEntropyChecks(context))
    if (isSelected('sign-in')) found.push(...(await import('./signIn.ts')).createSignInChecks(context))
    if (isSelected('tls', 'cookies', 'origins', 'proxies')) {
      found.push(...(await import('./web.ts')).createWebChecks(context))
    }
    if (isSelected('log')) found.push(...(await import('./log.ts')).createLogChecks(context, enclave))
  }
  if (isSelected('pins')) found.push(...(await import('./pins.ts')).createPinsChecks(context, database))
  if (isSelected('chain', 'checkpoints', 'balance', 'chain-head')) {
    found.push(...(await import('./chain.ts')).createChainChecks(context, database))
  }
  if (isSelected('clock')) found.push(...(await import('./clock.ts')).createClockChecks(context))
  return found.toSorted((left, right) => checkNames.indexOf(left.name) - checkNames.indexOf(right.name))
}

/** The selected checks, and those that they need or use. */
function select(all: readonly Check[], selected: readonly CheckName[]): Check[] {
  const wanted = new Set<CheckName>(selected)
  // A check comes after those that it needs.
  for (const { name, needs = [], uses = [] } of all.toReversed()) {
    if (wanted.has(name)) for (const other of [...needs, ...uses]) wanted.add(other)
  }
  return all.filter(({ name }) => wanted.has(name))
}

type RunChecksParameters = {
  checks: readonly Check[]
  faults: readonly SettingFault[]
  timeoutMs: number
}

/**
 * Runs all checks concurrently, each after those that it waits for. A check that hangs or throws becomes a fault, and the checks that
 * need it are skipped.
 */
export async function runChecks({ checks, faults, timeoutMs }: RunChecksParameters): Promise<NamedFinding[]> {
  const started = new Map<CheckName, Promise<readonly Finding[]>>()

  async function run(check: Check): Promise<readonly Finding[]> {
    // The list is ordered, so these have started.
    const before = await Promise.all(
      (check.needs ?? []).map(async (name) => ({ name, found: await started.get(name) })),
    )
    await Promise.all([...(check.uses ?? []), ...(check.after ?? [])].map((name) => started.get(name)))
    const wrong = findFaulty(check.settings, faults)
    if (wrong !== undefined) return [skipped(`${wrong} is invalid`)]
    for (const { name, found = [] } of before) {
      const [blocking] = found.filter(isBlocking)
      // A check that needs a skipped check is skipped for the same reason.
      if (blocking?.state === 'skipped') return [blocking]
      if (blocking !== undefined) return [skipped(`needs: ${name}`)]
    }
    try {
      const found = await withinTimeLimit(timeoutMs, (signal) => check.run({ signal }))
      return Array.isArray(found) ? found : [found as Finding]
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === 'TimeoutError'
      if (isLate) {
        return [
          fault(`no answer in ${timeoutMs / 1000} s`, 'Check whether it hangs, or allow more time with --timeout.'),
        ]
      }
      return [fault(`the check failed: ${describeError(error)}`, 'If this persists, report it as a bug in the doctor.')]
    }
  }

  for (const check of checks) started.set(check.name, run(check))
  const found = checks.map(async ({ name }) => ((await started.get(name)) ?? []).map((each) => ({ ...each, name })))
  return (await Promise.all(found)).flat()
}

function isBlocking({ state }: Finding): boolean {
  return state === 'fault' || state === 'skipped'
}

/** Returns the first of these settings that is invalid. */
function findFaulty(settings: RegExp | undefined, faults: readonly SettingFault[]): string | undefined {
  if (settings === undefined) return undefined
  return faults.flatMap(({ setting }) => setting.split(', ')).find((name) => settings.test(name))
}
