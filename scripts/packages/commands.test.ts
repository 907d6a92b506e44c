import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

const run = (...args: string[]) =>
  new Promise<{ code: unknown; stdout: string; stderr: string }>((settle) => {
    execFile(process.execPath, ['-C', 'source', ...args], { cwd: ROOT }, (error, stdout, stderr) =>
      settle({ code: error?.code ?? 0, stdout, stderr }),
    )
  })

test.each([
  ['pack without a folder', ['scripts/pack.ts']],
  ['pack into two folders', ['scripts/pack.ts', 'a', 'b']],
  ['pack with an option', ['scripts/pack.ts', '--publish']],
  ['an example that there is not', ['scripts/example.ts', 'angular']],
  ['an example in the folder above', ['scripts/example.ts', '..']],
  ['a release with another option', ['scripts/release.ts', '--now']],
  ['a release that publishes and only packs', ['scripts/release.ts', '--out', 'a', '--publish']],
  ['a release that changes versions and publishes at once', ['scripts/release.ts', '--bump', '--publish']],
])('%s: the usage, and 2', async (_, args) => {
  const { code, stdout, stderr } = await run(...args)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain('usage: npm run ')
})

test.each([
  ['no folder', []],
  ['two folders', ['a', 'b']],
  ['an option', ['--now']],
])('publishing %s: the usage, and 2', async (_, args) => {
  const { code, stdout, stderr } = await run('scripts/publish.ts', ...args)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain('usage: node scripts/publish.ts FOLDER')
})

test('publishing a folder that is not there: 1, and nothing is asked of npm', async () => {
  expect(await run('scripts/publish.ts', '/nowhere/tarballs')).toMatchObject({ code: 1, stdout: '' })
})
