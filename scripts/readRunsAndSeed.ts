import { readArguments, refuseArguments } from './readArguments.ts'

/**
 * Parses the command line of a fuzzer: the number of inputs, and the seed that chooses them. Exits after `--help`, and with 2 after wrong
 * arguments.
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
