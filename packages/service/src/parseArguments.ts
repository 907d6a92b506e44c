import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { countEdits } from './countEdits.ts'

type Parsed<Options extends ParseArgsOptionsConfig> = ReturnType<
  typeof parseArgs<{ options: Options; allowPositionals: true }>
>

export type ParsedArguments<Options extends ParseArgsOptionsConfig> =
  | { kind: 'run'; values: Parsed<Options>['values']; positionals: readonly string[] }
  | { kind: 'help' }
  /** The fault with a hint, in one line. */
  | { kind: 'fault'; fault: string }

const HELP = { help: { type: 'boolean', short: 'h' } } as const

/**
 * Parses a command line. `--help` and `-h` always exist and take precedence. An unknown option or a missing value is a fault that names the
 * option.
 *
 * @example
 * const parsed = parseArguments(process.argv.slice(2), { port: { type: 'string' } })
 */
export function parseArguments<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
  { takesPositionals = false }: { takesPositionals?: boolean } = {},
): ParsedArguments<Options> {
  try {
    const parsed = parseArgs({ args: [...args], options: { ...options, ...HELP }, allowPositionals: takesPositionals })
    if ((parsed.values as { help?: boolean }).help === true) return { kind: 'help' }
    return { kind: 'run', values: parsed.values as Parsed<Options>['values'], positionals: parsed.positionals }
  } catch (error) {
    if (!(error instanceof TypeError && 'code' in error)) throw error
    // After the first sentence, Node adds hints for programmers.
    const reason = error.message.split(/\.\s/)[0] ?? error.message
    return { kind: 'fault', fault: `${reason}. ${toHint(reason, Object.keys(options))}` }
  }
}

function toHint(reason: string, names: readonly string[]): string {
  const [, given] = /^Unknown option '--([^']+)'/.exec(reason) ?? []
  const near = names.find((name) => given !== undefined && countEdits(given, name) <= 2 && name.length > 2)
  return near === undefined ? 'See --help.' : `Did you mean --${near}?`
}
