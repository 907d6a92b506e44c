import type { AttackResult, Size } from './attack.ts'
import type { AttackName } from './attackNames.ts'
import { attacks } from './attacks.ts'
import { createChoices } from './createChoices.ts'
import { startTarget } from './startTarget.ts'

export type SecurityResult = AttackResult & { seconds: number }

/** Makes the attacks one after the other on one backend. One that cannot be finished is a fault, and the others go on. */
export async function runSecurity(parameters: {
  names: readonly AttackName[]
  size: Size
  seed: number
  say(line: string): void
  /** Aborted: what was started is stopped, and nothing more is tried. */
  signal?: AbortSignal
}): Promise<SecurityResult[]> {
  const { names, size, seed, say, signal } = parameters
  say('starting identity provider, satellite, PostgreSQL, enclave and coordinator')
  const target = await startTarget()
  const results: SecurityResult[] = []
  try {
    for (const name of names) {
      if (signal?.aborted) break
      const startedAt = performance.now()
      const seconds = () => (performance.now() - startedAt) / 1000
      say(`${name} …`)
      // The same inputs whichever attacks are chosen beside it.
      const random = createChoices(seed * 1000 + Object.keys(attacks).indexOf(name))
      try {
        // As another may have left it.
        await target.restart()
        const result = await attacks[name]({ target, size, random, say: (line) => say(`  ${line}`) })
        results.push({ ...result, seconds: seconds() })
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
        results.push({
          name,
          tried: 0,
          figures: {},
          faults: [`it could not be finished: ${reason}`],
          seconds: seconds(),
        })
      }
    }
    return results
  } finally {
    await target.stop()
  }
}
