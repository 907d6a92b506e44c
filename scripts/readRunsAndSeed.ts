import { readArguments, refuseArguments } from './readArguments.ts'

/**
 * What the command line of a fuzzer says: how many inputs, and the seed that chooses them. The process ends here after `--help`, and,
 * with 2, for wrong arguments.
 */
export function readRunsAndSeed(
  usage: string,
  { defaultRuns }: { defaultRuns: number },
): {
  runs: number
  seed: number
} {
  const { values } = readArguments(
    { runs: { type: 'string', default: String(defaultRuns) }, seed: { type: 'string', default: '1' } },
    usage,
  )
  const [runs, seed] = [Number(values.runs), Number(values.seed)]
  if (Number.isInteger(runs) && runs >= 1 && Number.isInteger(seed)) return { runs, seed }
  return refuseArguments('--runs is a number from 1, and --seed a whole number.', usage)
}
