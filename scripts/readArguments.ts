import type { ParseArgsOptionsConfig } from 'node:util'
import { type ParsedArguments, parseArguments } from '@countersign/service'

/**
 * What the command line of a script says. After `--help` the process ends here with 0; for an option that is not known, or has no
 * value, with 2: the reason and the usage are printed.
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

/** For what is well formed and still cannot be meant. */
export function refuseArguments(fault: string, usage: string): never {
  console.error(`${fault}\n\n${usage}`)
  return process.exit(2)
}
