import { execFile } from 'node:child_process'
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { layPglite } from '@countersign/testing'
import { COMPILE_CACHE, toPath } from '@countersign/testing/launcher'
import { afterAll, beforeAll, expect, test } from 'vitest'

let folder = ''
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'admin-')))
})
afterAll(() => rm(folder, { recursive: true }))

/** As people run it, in a folder. */
async function spawnCheck(env: Record<string, string>) {
  const { PATH = '' } = process.env
  const run = promisify(execFile)(
    process.execPath,
    ['-C', 'source', toPath('services/coordinator/src/admin.ts'), 'check'],
    { cwd: folder, env: { PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env } },
  )
  return run.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  )
}

test.each([
  ['misspelt', { DATA_DIR: 'mispelt' }, 'mispelt'],
  ['not set, in another folder', {}, '.countersign'],
  ['set but empty', { DATA_DIR: '' }, '.countersign'],
])('no database where DATA_DIR is %s: refused with the folder, and none is made', async (_, env, name) => {
  expect(await spawnCheck(env)).toEqual({
    code: 1,
    stdout: '',
    stderr: `The database cannot be read: there is no database in ${join(folder, name)}; name its folder in DATA_DIR, or set DATABASE_URL.\n`,
  })
  expect(await readdir(folder)).toEqual([])
})

test('an embedded database that is there is read', async () => {
  await layPglite(join(folder, '.countersign', 'database'))
  expect(await spawnCheck({ DATA_DIR: '' })).toMatchObject({ code: 0, stdout: expect.stringMatching(/^0 proofs\n/) })
})
