import { availableParallelism } from 'node:os'
import { readArguments } from '../../scripts/readArguments.ts'
import type { SweepResult } from './sweep.ts'
import { sweepInWorkers } from './sweepInWorkers.ts'
import { createTargets } from './targets.ts'

const USAGE = `usage: npm run sweep -- [--share PERCENT] [--bits N] [--seed N] [--target NAME] [--workers N]

Changes simulated evidence one byte at a time, cuts and extends it, and counts what the default policy accepts: nothing should.
  --share PERCENT   part of all mutations to try (default 100)
  --bits N          bits to flip at each position, 1 to 8 (default 1)
  --seed N          chooses the bits, and the part (default 1)
  --target NAME     only targets whose name contains NAME
  --workers N       threads that share the mutations, 1 to 64 (default: one for each core)
  --help            says this

Example: npm run sweep -- --share 1 --target quote
Exit codes: 0 nothing accepted and nothing crashed, 1 otherwise, 2 wrong arguments.`

const { values } = readArguments(
  {
    share: { type: 'string', default: '100' },
    bits: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    target: { type: 'string', default: '' },
    workers: { type: 'string', default: String(Math.min(availableParallelism(), 64)) },
  },
  USAGE,
)
const [share, bitsPerByte, seed] = [Number(values.share), Number(values.bits), Number(values.seed)]
const workers = Number(values.workers)
const isUsable =
  share > 0 &&
  share <= 100 &&
  [1, 2, 3, 4, 5, 6, 7, 8].includes(bitsPerByte) &&
  Number.isInteger(seed) &&
  Number.isInteger(workers) &&
  workers >= 1 &&
  workers <= 64
const targets = (await createTargets()).map(({ name }) => name).filter((name) => name.includes(values.target))

if (!isUsable || targets.length === 0) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  const options = { share: share / 100, seed, bitsPerByte }
  const results = await sweepInWorkers({ targets, options, workers, onResult: print })
  const count = (pick: (result: SweepResult) => number) => results.reduce((sum, result) => sum + pick(result), 0)
  const accepted = count((result) => result.accepted.length)
  const crashed = count((result) => result.crashed.length)
  console.log(`${count(({ tried }) => tried)} mutations tried: ${accepted} accepted, ${crashed} crashed`)
  process.exitCode = accepted + crashed === 0 ? 0 : 1
}

function print({ name, tried, accepted, crashed }: SweepResult) {
  console.log(
    `${name.padEnd(48)} ${String(tried).padStart(7)} tried  ${accepted.length} accepted  ${crashed.length} crashed`,
  )
  for (const label of accepted) console.log(`  accepted: ${label}`)
  for (const label of crashed) console.log(`  crashed: ${label}`)
}
