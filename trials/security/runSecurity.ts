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
import { slowConnections } from './attacks/slowConnections.ts'
import { slugTiming } from './attacks/slugTiming.ts'
import { vaultOldDatabase, vaultOwnCoordinator, vaultSecondEnclave, vaultStolenSession } from './attacks/vaults.ts'
import { createChoices } from './createChoices.ts'
import { startTarget } from './startTarget.ts'

/** Those that restart the coordinator come last. */
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
  'rate-limits': rateLimits,
} as const satisfies Readonly<Record<string, Attack>>
const attackNames = Object.keys(attacks) as (keyof typeof attacks)[]

const options = {
  only: choices('NAME', attackNames, 'these attacks'),
  seed: seed('the same one tries the same again'),
  short: flag('as in the tests: fewer of everything, and no judgement of times'),
  json: word('FILE', 'writes the results to a file too'),
}
type Options = Values<typeof options>

export const security: Trial = {
  summary: `Attacks a whole backend on this machine (identity provider, PostgreSQL, enclave and coordinator as separate processes) and reports what
was tried, with which figures, and what should not have happened.`,
  options,
  example: '--short --only open-redirect',
  run: runSecurity,
}

/** Makes the attacks one after the other on one backend. One that cannot be finished is a fault, and the others go on. */
export async function runSecurity({ scope, say }: TrialDeps, options: Options): Promise<Outcome> {
  const { only, seed, short, json } = options
  say('starting identity provider, satellite, PostgreSQL, enclave and coordinator')
  const target = await startTarget(scope)
  const results: (AttackResult & { name: string })[] = []
  for (const name of only) {
    say(`${name} …`)
    // The same inputs whichever other attacks are chosen.
    const random = createChoices(seed * 1000 + Object.keys(attacks).indexOf(name))
    try {
      // As another may have left it.
      await target.restart()
      const size = short ? 'short' : 'full'
      results.push({ name, ...(await attacks[name]({ target, size, random, say: (line) => say(`  ${line}`) })) })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      results.push({ name, tried: 0, figures: {}, faults: [`it could not be finished: ${reason}`] })
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
    ],
    figures: Object.fromEntries(results.map(({ name, figures }) => [name, figures])),
  }
}
