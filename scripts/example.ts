// Starts an example against `npm run dev`, from the packages as they are in this checkout:
//   npm run example -- NAME

import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packAll } from './packages/packAll.ts'
import { readPublished } from './packages/readPublished.ts'

const root = resolve(import.meta.dirname, '..')
const names = readdirSync(join(root, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

const USAGE = `usage: npm run example -- ${names.join('|')}

Packs the packages, installs them into the example, and starts it. It needs the local stack, in another terminal:
  npm run dev -- --origin http://localhost:3000`

async function start(name: string): Promise<number> {
  const example = join(root, 'examples', name)
  const run = (...args: string[]) => spawnSync('npm', args, { cwd: example, stdio: 'inherit' }).status ?? 1
  const folder = await mkdtemp(join(tmpdir(), 'countersign-example-'))
  try {
    const packed = await packAll(root, { packages: readPublished(root), folder })
    const installed = run('install', '--no-save', ...packed.map(({ tarball }) => tarball))
    if (installed !== 0) return installed
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return run('start')
}

const [name = '', ...rest] = process.argv.slice(2)
if (name === '--help') {
  console.log(USAGE)
} else if (rest.length > 0 || !names.includes(name)) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  process.exitCode = await start(name)
}
