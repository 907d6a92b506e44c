import { readArguments, refuseArguments } from '../../scripts/readArguments.ts'

const USAGE = `usage: npm run monitor:history -- [--count N]

Has the monitor look at a wallet with many signatures, nine of ten transactions and the rest messages, all honest: nothing may be found. Then
plants four cases, one after the other, which the next look must find by name.
  --count N   signatures (default 10000)
  --help      says this

Example: npm run monitor:history -- --count 500
Exit codes: 0 nothing and everything was found, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments({ count: { type: 'string', default: '10000' } }, USAGE)
const count = Number(values.count)
if (!Number.isSafeInteger(count) || count < 1) refuseArguments('--count is a number from 1.', USAGE)

// After the arguments are read: it takes a second to load.
const { runHistory } = await import('./runHistory.ts')
const { conclusion, findings, headline, seconds, planted } = await runHistory({ count, say: console.log })
for (const line of findings) console.log(`found: ${line}`)
console.log(
  `${headline.proven} of ${headline.nonce} transactions and ${headline.entries} entries of a log of ${headline.size}: ${conclusion}, in ${seconds.toFixed(1)} s`,
)
const EXPECTED = ['no-receipt', 'log-withholds', 'log-lies', 'hidden']
for (const [place, { name, findings: found, seconds: took }] of planted.entries()) {
  const isFound = found.length === 1 && found[0]?.startsWith(EXPECTED[place] ?? '')
  console.log(`${isFound ? 'found' : 'NOT FOUND'}: ${name}, in ${took.toFixed(1)} s: ${found.join('; ')}`)
  if (!isFound) process.exitCode = 1
}
if (conclusion !== 'complete' || findings.length > 0) process.exitCode = 1
