import { writeFile } from 'node:fs/promises'
import { choices, flag, type Outcome, seed, type Trial, type TrialDeps, type Values, word } from '../trial.ts'
import type { Attack, AttackResult } from './attack.ts'
import { abuseMatrix } from './attacks/abuseMatrix.ts'
import { cookieTossing } from './attacks/cookieTossing.ts'
import { eventStreams } from './attacks/eventStreams.ts'
import { headerFloods } from './attacks/headerFloods.ts'
import { logInjection } from './attacks/logInjection.ts'
import { openRedirect } from './attacks/openRedirect.ts'
import { oversizedBodies } from './attacks/oversizedBodies.ts'
import { rateLimits } from './attacks/rateLimits.ts'
import { sessions } from './attacks/sessions.ts'
import { slowConnections } from './attacks/slowConnections.ts'
import { slugTiming } from './attacks/slugTiming.ts'
import { vaultOldDatabase, vaultOwnCoordinator, vaultSecondEnclave, vaultStolenSession } from './attacks/vaults.ts'
import { createChoices } from './createChoices.ts'
import { startTarget } from './startTarget.ts'

/** Attacks that restart the coordinator come last. */
const attacks = {
  'abuse-matrix': abuseMatrix,
  'header-floods': headerFloods,
  'open-redirect': openRedirect,
  'log-injection': logInjection,
  'slug-timing': slugTiming,
  'oversized-bodies': oversizedBodies,
  'slow-connections': slowConnections,
  'event-streams': eventStreams,
  'cookie-tossing': cookieTossing,
  'vault-stolen-session': vaultStolenSession,
  'vault-own-coordinator': vaultOwnCoordinator,
  'vault-second-enclave': vaultSecondEnclave,
  'vault-old-database': vaultOldDatabase,
  sessions,
  'rate-limits': rateLimits,
} as const satisfies Readonly<Record<string, Attack>>
const attackNames = Object.keys(attacks) as (keyof typeof attacks)[]

const options = {
  only: choices('NAME', attackNames, 'run only these attacks'),
  seed: seed('chooses the inputs'),
  short: flag('smaller sizes, as in the tests, and no check of timing'),
  json: word('FILE', 'write the results to a file'),
}
type Options = Values<typeof options>

export const security: Trial = {
  summary: `Attacks a whole backend on this machine, with identity provider, PostgreSQL, enclave and coordinator as separate processes. Reports
the number of attempts, measurements and faults of each attack.`,
  options,
  example: '--short --only open-redirect',
  run: runSecurity,
}

/** Runs the attacks one after the other on one backend. An attack that can't finish is a fault, and the others continue. */
export async function runSecurity({ scope, say }: TrialDeps, options: Options): Promise<Outcome> {
  const { only, seed, short, json } = options
  say('starting identity provider, satellite, PostgreSQL, enclave and coordinator')
  const target = await startTarget(scope)
  const results: (AttackResult & { name: string })[] = []
  for (const name of only) {
    say(`${name} …`)
    // The inputs don't depend on the selection of attacks.
    const random = createChoices(seed * 1000 + Object.keys(attacks).indexOf(name))
    try {
      // Undoes settings of an earlier attack.
      await target.restart()
      const size = short ? 'short' : 'full'
      results.push({ name, ...(await attacks[name]({ target, size, random, say: (line) => say(`  ${line}`) })) })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      results.push({ name, tried: 0, figures: {}, faults: [`attack failed: ${reason}`] })
    }
  }
  if (json !== '') await writeFile(json, `${JSON.stringify({ options, results }, undefined, 2)}\n`)
  return {
    faults: results.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`)),
    tables: [
      {
        head: ['Attack', 'Tried', 'Faults'],
        rows: results.map(({ name, tried, faults }) => [name, tried, faults.length]),
      },
      ...results.flatMap(({ table }) => table ?? []),
    ],
    figures: Object.fromEntries(results.map(({ name, figures }) => [name, figures])),
  }
}
