import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { COMPILE_CACHE, toPath } from '@countersign/testing/launcher'
import { expect, onTestFinished, test } from 'vitest'
import { createMigratedDatabase } from '../test/store/store.ts'

/** Runs the program as a process. */
async function spawnCheck(env: Record<string, string>) {
  const { PATH = '' } = process.env
  const run = promisify(execFile)(
    process.execPath,
    ['-C', 'source', toPath('services/coordinator/src/admin.ts'), 'check'],
    { env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env } },
  )
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  )
}

test.each([{}, { DATABASE_URL: '' }])('names the missing setting for %j', async (env) => {
  const result = await spawnCheck(env)
  expect(result).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^DATABASE_URL: /) })
})

test('reads a database with a coordinator’s schema', async () => {
  const { url, drop } = await createMigratedDatabase()
  onTestFinished(drop)
  const result = await spawnCheck({ DATABASE_URL: url })
  expect(result).toMatchObject({ code: 0, stdout: expect.stringMatching(/^0 proofs\n/) })
})
