import { readFileSync } from 'node:fs'
import packageJson from '../package.json' with { type: 'json' }
import { runDoctor } from './operate/doctor/runDoctor.ts'
import { systemClock } from './system.ts'

// Late failures of checks that timed out must not end the process before its output. Warnings of libraries may quote secrets.
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
  return { code: 1, stdout: '', stderr: `The doctor failed (${name}). Please report this bug.` }
})
const [output, text] = stderr === '' ? [process.stdout, stdout] : [process.stderr, stderr]
// Exits explicitly, because hanging connections would keep the process alive.
output.write(`${text}\n`, () => process.exit(code))
