// Builds the package in this folder before npm packs it. Every published package uses it as `prepack`.

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Deletes earlier output, which would otherwise be published too. */
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
