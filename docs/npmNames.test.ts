import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const MADE = new Set(['node_modules', 'dist', 'dist-types', '.git', '.next', '.countersign'])

/** The fixed instructions in receipts of version 1. The specification says that the name is not ours yet. */
const FIXED = ['packages/receipt/src/v1/schema.ts']

/** A command that downloads one of our package names, which anyone may register until the packages are published. */
const DOWNLOAD =
  /\b(?:npx(?: -y| --yes)?|npm (?:exec|i|install|add)(?: --)?) [^\n`]*?(?:@countersign\/|countersign-verifier)/

test('no page or program tells readers to install our packages from npm before they are published', () => {
  const files = globSync('**/*.{md,ts,tsx,html,sh}', {
    cwd: ROOT,
    exclude: (path) => MADE.has(path.split('/').at(-1) ?? ''),
  })
  expect(files).toContain('packages/sdk/README.md')
  const sending = files.filter(
    (path) => !path.startsWith('docs/npmNames') && DOWNLOAD.test(readFileSync(join(ROOT, path), 'utf8')),
  )
  expect(sending).toEqual(FIXED)
})
