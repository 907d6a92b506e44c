import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'

/**
 * What the command line says. An option that is not known, or has no value, is bad input and no crash: the reason and
 * the usage are printed, and the process ends with 2.
 */
export function readArguments<const Options extends ParseArgsOptionsConfig>(options: Options, usage: string) {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    // Node adds hints for programmers after the first sentence.
    const reason = error instanceof Error ? error.message.split('. ')[0] : 'bad arguments'
    console.error(`${reason}\n\n${usage}`)
    return process.exit(2)
  }
}
