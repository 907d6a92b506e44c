import { withinTimeLimit } from '@countersign/protocol'
import type { SettingFault } from '@countersign/service'
import { type Check, type Finding, fault, type NamedFinding, skipped } from './check.ts'
import type { CheckName } from './names.ts'
import { describeError } from './reasons.ts'

export type RunChecksParameters = {
  checks: readonly Check[]
  faults: readonly SettingFault[]
  /** For each check. */
  timeoutMs: number
}

/**
 * All at once, each when those before it are over. It ends in time whatever they do: one that hangs or throws is a fault of its own,
 * and those that need it say so.
 */
export async function runChecks({ checks, faults, timeoutMs }: RunChecksParameters): Promise<NamedFinding[]> {
  const settled = new Map<CheckName, Promise<readonly Finding[]>>()

  async function run(check: Check): Promise<readonly Finding[]> {
    // Those that they wait for come before them in the list.
    const before = await Promise.all(
      (check.needs ?? []).map(async (name) => ({ name, found: await settled.get(name) })),
    )
    await Promise.all([...(check.uses ?? []), ...(check.after ?? [])].map((name) => settled.get(name)))
    const wrong = findFaulty(check.settings, faults)
    if (wrong !== undefined) return [skipped(`${wrong} has a fault`)]
    for (const { name, found = [] } of before) {
      const [blocking] = found.filter(isBlocking)
      // What was not looked at for a reason is not looked at further, for the same.
      if (blocking?.state === 'skipped') return [blocking]
      if (blocking !== undefined) return [skipped(`it needs: ${name}`)]
    }
    try {
      const found = await withinTimeLimit(timeoutMs, (signal) => check.run({ signal }))
      return Array.isArray(found) ? found : [found as Finding]
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === 'TimeoutError'
      if (isLate) {
        return [fault(`no answer in ${timeoutMs / 1000} s`, 'See whether it hangs, or allow more time with --timeout.')]
      }
      return [
        fault(
          `could not be looked at: ${describeError(error)}`,
          'If this persists, it is a fault of the doctor: report it.',
        ),
      ]
    }
  }

  for (const check of checks) settled.set(check.name, run(check))
  const found = checks.map(async ({ name }) => ((await settled.get(name)) ?? []).map((each) => ({ ...each, name })))
  return (await Promise.all(found)).flat()
}

function isBlocking({ state }: Finding): boolean {
  return state === 'fault' || state === 'skipped'
}

/** The first setting of these that has a fault. */
function findFaulty(settings: RegExp | undefined, faults: readonly SettingFault[]): string | undefined {
  if (settings === undefined) return undefined
  return faults.flatMap(({ setting }) => setting.split(', ')).find((name) => settings.test(name))
}
