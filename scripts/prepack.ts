// Builds the package in this folder before npm packs it: `prepack` of every published package.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** What an earlier build made from a source that is gone would be published with the rest. */
function removeStale(): void {
  if (!existsSync('dist')) return
  for (const path of readdirSync('dist', { recursive: true, encoding: 'utf8' })) {
    const [, name] = /^(.*?)(?:\.d\.ts|\.js)(?:\.map)?$/.exec(path) ?? []
    const sources = [`${name}.ts`, `${name}.tsx`].map((source) => join('src', source))
    if (name !== undefined && !sources.some((source) => existsSync(source))) rmSync(join('dist', path))
  }
}

removeStale()
const { status } = spawnSync('tsc', ['-b'], { stdio: 'inherit' })
process.exitCode = status ?? 1
