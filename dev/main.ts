import { enableCompileCache } from 'node:module'
import { format, stripVTControlCharacters } from 'node:util'
import { COMPILE_CACHE } from '@countersign/testing/launcher'
import { type Options, parseOptions, USAGE } from './options.ts'
import { startStack, toSeconds } from './stack.ts'
import { createVoice } from './voice.ts'

/** Runs until a signal stops it, or a part fails. Gives the exit code. */
async function run(options: Options): Promise<number> {
  enableCompileCache(COMPILE_CACHE)
  const voice = createVoice({ isVerbose: options.isVerbose, output: process.stdout })
  const { say } = voice
  // Libraries in this process write to the console, what is right for servers on the internet. Our own parts report what fails.
  for (const name of ['debug', 'log', 'info', 'warn', 'error'] as const) {
    console[name] = (...words: unknown[]) => voice.detail('dev', stripVTControlCharacters(format(...words)))
  }
  const faults: string[] = []
  const { promise: over, resolve: stop } = Promise.withResolvers<void>()
  const onFault = (text: string) => {
    faults.push(text)
    stop()
  }
  // At a terminal a second Ctrl-C, for the impatient, finds no listener and ends us; the services see their input close.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop())
  // A closed terminal or pipe: nothing reads the output any more.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => stop())
  // The parts in this process are supervised too.
  process.on('uncaughtException', (error) => onFault(`A part in this process failed: ${error.stack}`))

  const stack = startStack({ options, voice, onFault, hasDocs: true })
  void stack.ready.then((summary) => {
    if (summary === undefined || faults.length > 0) return
    say('dev', `Countersign is running, after ${toSeconds(performance.now())}, with simulated silicon:`)
    say('dev', 'nothing here proves anything about hardware.')
    voice.shout(`Open ${summary.openUrl}`)
    for (const [name, place] of Object.entries(summary.places)) say('dev', `  ${name.padEnd(11)} ${place}`)
    say('dev', `Ctrl-C stops it.${options.isVerbose ? '' : ' With --verbose every part shows what it does.'}`)
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
