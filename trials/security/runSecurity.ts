import { writeFile } from 'node:fs/promises'
import type { Outcome, TrialDeps } from '../trial.ts'
import type { Attack, AttackResult, attackNames } from './attack.ts'
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

type AttackName = (typeof attackNames)[number]
type SecurityOptions = { only: readonly AttackName[]; seed: number; short: boolean; json: string }

const attacks: Readonly<Record<AttackName, Attack>> = {
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
}

/** Makes the attacks one after the other on one backend. One that cannot be finished is a fault, and the others go on. */
export async function runSecurity({ scope, say }: TrialDeps, options: SecurityOptions): Promise<Outcome> {
  const { only, seed, short, json } = options
  say('starting identity provider, satellite, PostgreSQL, enclave and coordinator')
  const target = scope.add(await startTarget(), ({ stop }) => stop())
  const results: AttackResult[] = []
  for (const name of only) {
    say(`${name} …`)
    // The same inputs whichever other attacks are chosen.
    const random = createChoices(seed * 1000 + Object.keys(attacks).indexOf(name))
    try {
      // As another may have left it.
      await target.restart()
      const size = short ? 'short' : 'full'
      results.push(await attacks[name]({ target, size, random, say: (line) => say(`  ${line}`) }))
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
