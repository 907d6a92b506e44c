import { readArguments, refuseArguments } from '../scripts/readArguments.ts'
import { runAttacks } from './runAttacks.ts'

const USAGE = `usage: node -C source contracts/attackLogWitness.ts [--count N] [--runs N] [--seed N]

Sends honest and false consistency proofs to the compiled LogWitness contract, on real trees of 5,000 entries. Compares each decision with
packages/log, and prints a table of cases by kind.
  --count N  attacks (default 100000)
  --runs N   logs that advance in random steps from nothing to 5,000 entries (default 1000)
  --seed N   seed of the random choices (default 1)
  --help     prints this text

A proof with another size ("resized") can be valid, because a consistency proof doesn't prove the size. It is no attack.

Example: node -C source contracts/attackLogWitness.ts --count 7000 --runs 10 --seed 7
Exit codes: 0 only honest proofs accepted, 1 an attack accepted, an honest proof rejected or a difference to packages/log, 2 wrong arguments.`

const { values } = readArguments(
  {
    count: { type: 'string', default: '100000' },
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
  },
  USAGE,
)
const [count, runs, seed] = [values.count, values.runs, values.seed].map(Number) as [number, number, number]
if (![count, runs, seed].every((value) => Number.isSafeInteger(value) && value >= 0)) {
  refuseArguments('Count, runs and seed are whole numbers from 0.', USAGE)
}
const startedAt = performance.now()
const rows = await runAttacks({ count, runs, seed, onProgress: (text) => console.error(text) })
const print = (...cells: (string | number)[]) =>
  console.log(cells.map((cell, index) => (index === 0 ? String(cell).padEnd(10) : String(cell).padStart(12))).join(''))
print('kind', 'cases', 'accepted', 'rejected', 'differences')
for (const { kind, cases, accepted, differences } of rows) print(kind, cases, accepted, cases - accepted, differences)
const attacks = rows.filter(({ isAttack }) => isAttack)
const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
const accepted = sum(attacks.map((row) => row.accepted))
const differences = sum(rows.map((row) => row.differences))
const refused = sum(rows.filter(({ kind }) => kind === 'honest').map((row) => row.cases - row.accepted))
console.log(
  `seed ${seed}: ${sum(attacks.map(({ cases }) => cases))} attacks, ${accepted} accepted; ${runs} logs, ${refused} honest proofs rejected; ` +
    `${differences} differences; ${Math.round((performance.now() - startedAt) / 1000)} s`,
)
process.exitCode = accepted + refused + differences === 0 ? 0 : 1
