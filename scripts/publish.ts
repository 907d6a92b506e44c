// Publishes tarballs that `npm run release -- --out FOLDER` has checked:
//   node scripts/publish.ts FOLDER
// Nothing but Node and this repository runs here, no package and no tool: it has the right to publish.

import { execFileSync, spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { listChangesets } from './packages/applyChangesets.ts'
import { findTarballs } from './packages/findTarballs.ts'
import { type PublishDeps, publishAll } from './packages/publishAll.ts'
import { readPublished } from './packages/readPublished.ts'

const root = resolve(import.meta.dirname, '..')
const USAGE = `usage: node scripts/publish.ts FOLDER

Publishes the tarballs that npm run release -- --out FOLDER left there, with the token in NPM_TOKEN or as a trusted publisher.
Exit codes: 0 all is published, 1 something is not, 2 wrong arguments.`

const deps: PublishDeps = {
  runNpm: (args, env) =>
    spawnSync('npm', args, { cwd: root, env, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0,
  env: process.env,
  isClean: () => execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }) === '',
  waiting: listChangesets(root),
  say: console.log,
}

const [folder, ...others] = process.argv.slice(2)
if (folder === '--help') {
  console.log(USAGE)
} else if (folder === undefined || folder.startsWith('-') || others.length > 0) {
  console.error(USAGE)
  process.exitCode = 2
} else {
  try {
    publishAll(deps, findTarballs({ packages: readPublished(root), folder: resolve(folder) }))
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    process.exitCode = 1
  }
}
