import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run log:attacks -- [--only WORD]

Attacks the log of a whole backend as its operator could: an old database, a second enclave, an origin without witnesses, a frontier that
is made up. Nothing may be released, and a spare origin takes over by itself.
  --only WORD   the attacks with this word in their names
  --help        says this

Example: npm run log:attacks -- --only database
Exit codes: 0 all of them failed, 1 one did not, 2 wrong arguments.`

const { values } = readArguments({ only: { type: 'string' } }, USAGE)

// After the arguments are read: it takes seconds to load.
const { attacks, runAttacks } = await import('./runAttacks.ts')
const names = (Object.keys(attacks) as (keyof typeof attacks)[]).filter((name) => name.includes(values.only ?? ''))
if (names.length === 0) refuseArguments(`--only: no attack has ${values.only} in its name.`, USAGE)
const startedAt = performance.now()
const results = await runAttacks({ names, say: console.log })
for (const { name, faults } of results) {
  for (const line of faults) console.log(`fault: ${name}: ${line}`)
  console.log(`${name}: ${faults.length} faults`)
}
console.log(`${results.length} attacks (${((performance.now() - startedAt) / 1000).toFixed(0)} s)`)
if (results.some(({ faults }) => faults.length > 0)) process.exitCode = 1
