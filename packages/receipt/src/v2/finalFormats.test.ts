import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const packages = join(import.meta.dirname, '../../..')
const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex')

/** SHA-256 over the names and hashes of these files, as `sha256sum` prints them. */
function hashFiles(patterns: readonly string[]): string {
  const files = globSync([...patterns], { cwd: packages }).toSorted()
  return sha256(files.map((file) => `${sha256(readFileSync(join(packages, file)))}  ${file}\n`).join(''))
}

// These formats are final: their specifications say so. A change of a vector is a change of the format, which needs a new version.
test.each([
  {
    format: 'receipt version 2',
    patterns: ['receipt/spec/golden-v2/**/*.{json,car}', 'receipt/spec/receipt-v2.*.json'],
    expected: 'f5faa137204475ac51d17c37186616a732e0428efb47ad3aab5d296729d40181',
  },
  {
    format: 'the policy',
    patterns: ['policy/vectors/*.json', 'policy/spec/*.json'],
    expected: 'a5e4a3a665365fb02419d3e80b3e9bfe2933fe5fa4a1000bef803b8a82a8b879',
  },
  {
    format: 'the log',
    patterns: ['log/vectors/**/*.json'],
    expected: '2023137017401e0219fe5d73a8f9aa13282e0a9f3217767db4bbcd20db1b18e0',
  },
])('the vectors of $format are unchanged', ({ patterns, expected }) => {
  expect(hashFiles(patterns)).toBe(expected)
})
