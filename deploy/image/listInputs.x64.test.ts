import { execFileSync } from 'node:child_process'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { listInputs } from './listInputs.ts'

const root = join(import.meta.dirname, '../..')

/** Other distributions have other folders. */
const toNames = (paths: readonly string[]) => paths.map((path) => basename(path)).toSorted()

test('the packages have the libraries that Node and its addons load', () => {
  // Inside of the repository, where addons are found by name.
  const code = `require('sodium-native'); require('secp256k1/bindings.js'); JSON.stringify(process.report.getReport().sharedObjects)`
  const loaded: string[] = JSON.parse(execFileSync(process.execPath, ['-p', code], { cwd: root, encoding: 'utf8' }))
  const needed = loaded.filter((path) => /\.so\b/.test(path) && !path.startsWith('linux-vdso'))
  const given = listInputs(root)
    .flatMap(({ files }) => Object.keys(files))
    .filter((path) => path !== 'bin/node')
  expect(toNames(given)).toEqual(toNames(needed))
})
