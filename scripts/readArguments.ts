import type { ParseArgsOptionsConfig } from 'node:util'
import { type ParsedArguments, parseArguments } from '@countersign/service'

/**
 * Parses the command line of a script. Prints the usage and exits with 0 after `--help`, and with 2 after an unknown option or a missing
 * value.
 */
export function readArguments<const Options extends ParseArgsOptionsConfig>(
  options: Options,
  usage: string,
  { takesPositionals = false }: { takesPositionals?: boolean } = {},
): Omit<Extract<ParsedArguments<Options>, { kind: 'run' }>, 'kind'> {
  const parsed = parseArguments(process.argv.slice(2), options, { takesPositionals })
  if (parsed.kind === 'run') return parsed
  if (parsed.kind === 'fault') return refuseArguments(parsed.fault, usage)
  console.log(usage)
  return process.exit(0)
}

/** Rejects arguments that are well formed but not valid. */
export function refuseArguments(fault: string, usage: string): never {
  console.error(`${fault}\n\n${usage}`)
  return process.exit(2)
}
