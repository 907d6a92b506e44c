import { readFileSync } from 'node:fs'
import packageJson from '../package.json' with { type: 'json' }
import { runDoctor } from './operate/doctor/runDoctor.ts'
import { systemClock } from './system.ts'

// What a part that hangs does later is no reason to say nothing; and libraries warn in words that may quote what they were given.
process.on('unhandledRejection', () => {})
process.on('uncaughtException', () => {})
process.removeAllListeners('warning')

const { code, stdout, stderr } = await runDoctor(process.argv.slice(2), {
  env: process.env,
  clock: systemClock,
  fetch,
  readFile: (path) => readFileSync(path, 'utf8'),
  version: packageJson.version,
}).catch((error: unknown) => {
  const name = error instanceof Error ? error.name : 'unknown'
  return { code: 1, stdout: '', stderr: `The doctor itself failed (${name}): please report it.` }
})
const [output, text] = stderr === '' ? [process.stdout, stdout] : [process.stderr, stderr]
// Ended by hand: what hangs must not keep the process.
output.write(`${text}\n`, () => process.exit(code))
