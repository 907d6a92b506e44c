import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '..')

function run(...args: string[]) {
  return new Promise<{ code: unknown; stdout: string; stderr: string }>((settle) => {
    execFile(process.execPath, ['-C', 'source', ...args], { cwd: ROOT }, (error, stdout, stderr) =>
      settle({ code: error?.code ?? 0, stdout, stderr }),
    )
  })
}

const PROGRAM = `
  import { readRunsAndSeed } from './scripts/readRunsAndSeed.ts'
  console.log(JSON.stringify(readRunsAndSeed('usage: this', { defaultRuns: 5 })))`
const read = (...args: string[]) => run('--input-type=module', '-e', PROGRAM, '--', 'main.ts', ...args)

test('runs and seed are as given, or the defaults', async () => {
  const [plain, given, help] = await Promise.all([read(), read('--runs', '9', '--seed', '2'), read('--help')])
  expect(plain).toEqual({ code: 0, stdout: '{"runs":5,"seed":1}\n', stderr: '' })
  expect(given).toEqual({ code: 0, stdout: '{"runs":9,"seed":2}\n', stderr: '' })
  expect(help).toEqual({ code: 0, stdout: 'usage: this\n', stderr: '' })
})

test.each([
  ['an unknown option', ['--rns', '1']],
  ['an option without its value', ['--runs']],
  ['no runs', ['--runs', '0']],
  ['part of a run', ['--runs', '1.5']],
  ['a seed that is no number', ['--seed', 'x']],
  ['more than options', ['more']],
])('%s: the usage, and 2', async (_, args) => {
  const { code, stdout, stderr } = await read(...args)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/usage: this\n$/)
})
