// Starts an example against `npm run dev`, with the packages of this checkout: npm run example -- NAME

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packAll } from './packages/packAll.ts'
import { readPublished } from './packages/readPublished.ts'
import { readArguments, refuseArguments } from './readArguments.ts'

const root = resolve(import.meta.dirname, '..')
const names = readdirSync(join(root, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

const USAGE = `usage: npm run example -- ${names.join('|')}

Packs the packages, installs them into the example, and starts it. It needs the local stack, in another terminal:
npm run dev -- --origin http://localhost:3000
For "direct" and "agent", it also starts the stack: npm run dev -- --direct http://localhost:3000/ or --log
  --help   says this

Example: npm run example -- vite
Exit codes: those of the example, 2 wrong arguments.`

/** Returns the exit code. At a terminal the kernel also sends Ctrl-C to npm; other signals are forwarded. */
function runNpm(cwd: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', args, { cwd, stdio: 'inherit' })
    const passOn = (signal: NodeJS.Signals) => void child.kill(signal)
    process
      .once('SIGTERM', passOn)
      .once('SIGHUP', passOn)
      .once('SIGINT', () => {})
    child.on('error', reject)
    child.on('close', (code) => resolve(code ?? 1))
  })
}

async function start(name: string): Promise<number> {
  const example = join(root, 'examples', name)
  const folder = await mkdtemp(join(tmpdir(), 'countersign-example-'))
  try {
    const packed = await packAll(root, { packages: readPublished(root), folder })
    const installed = await runNpm(example, [
      'install',
      '--no-save',
      '--no-legacy-peer-deps',
      ...packed.map(({ tarball }) => tarball),
    ])
    if (installed !== 0) return installed
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return runNpm(example, ['start'])
}

/** Starts the local stack that this example needs. The example ends with it. */
async function startWithStack(name: string, args: readonly string[]): Promise<number> {
  const main = join(root, 'dev/main.ts')
  const stack = spawn(process.execPath, ['-C', 'source', main, ...args], { stdio: 'inherit' })
  const ended = once(stack, 'close')
  const endHere = () => process.kill(process.pid, 'SIGTERM')
  stack.once('close', endHere)
  const code = await start(name)
  stack.off('close', endHere)
  stack.kill()
  await ended
  return code
}

const STACKS: Readonly<Record<string, readonly string[]>> = {
  agent: ['--log'],
  direct: ['--direct', 'http://localhost:3000/'],
}

const [name = '', ...rest] = readArguments({}, USAGE, { takesPositionals: true }).positionals
if (rest.length > 0 || !names.includes(name)) refuseArguments('Name one example.', USAGE)
const args = STACKS[name]
process.exitCode = await (args ? startWithStack(name, args) : start(name))
