import { enableCompileCache } from 'node:module'
import { format, stripVTControlCharacters } from 'node:util'
import { COMPILE_CACHE } from '@countersign/testing/launcher'
import { type Options, parseOptions, USAGE } from './options.ts'
import { startStack, toSeconds } from './stack.ts'
import { createVoice } from './voice.ts'

/** Runs until a signal stops it or a part fails. Returns the exit code. */
async function run(options: Options): Promise<number> {
  enableCompileCache(COMPILE_CACHE)
  const voice = createVoice({ isVerbose: options.isVerbose, output: process.stdout })
  const { say } = voice
  // Libraries in this process log to the console, as servers do. Our own parts report failures.
  for (const name of ['debug', 'log', 'info', 'warn', 'error'] as const) {
    console[name] = (...words: unknown[]) => voice.detail('dev', stripVTControlCharacters(format(...words)))
  }
  const faults: string[] = []
  const { promise: over, resolve: stop } = Promise.withResolvers<void>()
  const onFault = (text: string) => {
    faults.push(text)
    stop()
  }
  // At a terminal a second Ctrl-C finds no listener and ends this process. The services see their input close.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop())
  // The terminal or pipe is closed.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => stop())
  // Parts in this process are supervised too.
  process.on('uncaughtException', (error) => onFault(`A part in this process failed: ${error.stack}`))

  const stack = startStack({ options, voice, onFault, hasDocs: true })
  void stack.ready.then((summary) => {
    if (summary === undefined || faults.length > 0) return
    say('dev', `Countersign is running, after ${toSeconds(performance.now())}, with simulated hardware:`)
    say('dev', 'its proofs are marked MOCK.')
    voice.shout(`Open ${summary.openUrl}`)
    for (const [name, place] of Object.entries(summary.places)) say('dev', `  ${name.padEnd(11)} ${place}`)
    say('dev', `Ctrl-C stops it.${options.isVerbose ? '' : ' Add --verbose to see every log line.'}`)
  })
  await over
  await stack.stop()
  for (const text of faults) process.stderr.write(`${text}\n`)
  if (faults.length === 0) say('dev', 'Stopped.')
  return faults.length === 0 ? 0 : 1
}

const parsed = parseOptions(process.argv.slice(2))
if (parsed.kind === 'help') {
  console.log(USAGE)
} else if (parsed.kind === 'fault') {
  console.error(`${parsed.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else {
  process.exitCode = await run(parsed.options)
}
