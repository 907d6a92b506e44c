import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

type Packages = Record<string, { version: string; integrity?: string; os?: string | string[]; cpu?: string | string[] }>

const toTwin = (path: string) => path.replace(/(?<=linux-)(?:arm64|x64)/, (arch) => (arch === 'x64' ? 'arm64' : 'x64'))

/** Packages for Linux on arm64 or x64, by their names or their `cpu`. */
function findNatives(packages: Packages): string[] {
  return Object.entries(packages).flatMap(([path, { os = [], cpu = [] }]) => {
    const isNative = [os].flat().includes('linux') && /^(?:arm64|x64)$/m.test([cpu].flat().join('\n'))
    return isNative || toTwin(path) !== path ? [path] : []
  })
}

/** Packages whose counterpart for the other architecture is missing, has another version or has no hash. */
function findWithoutTwin(packages: Packages): string[] {
  return findNatives(packages).filter((path) => {
    const twin = toTwin(path) === path ? undefined : packages[toTwin(path)]
    return twin?.version !== packages[path]?.version || twin?.integrity === undefined
  })
}

test.each(['package-lock.json', 'scripts/runtime/package-lock.json', 'scripts/engines/package-lock.json'])(
  '%s lists each native package for arm64 and for x64',
  (file) => {
    const { packages } = JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as { packages: Packages }
    expect(findWithoutTwin(packages)).toEqual([])
    expect(findNatives(packages).length).toBeGreaterThan(1)
  },
)
