import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { LogLine } from './log.ts'
import { type RunProgramDeps, runProgram } from './runProgram.ts'

/** A program in a process that only records calls. */
async function run(args: string[], env: Record<string, string> = {}) {
  const lines: LogLine[] = []
  const add = (line: LogLine) => void lines.push(line)
  const stdout: string[] = []
  const stderr: string[] = []
  const process = {
    argv: ['node', 'main.ts', ...args],
    env,
    stdout: { write: (text: string) => stdout.push(text) },
    stderr: { write: (text: string) => stderr.push(text) },
    on() {},
    exit(code: number) {
      process.exitCode = code
    },
    exitCode: 0,
  }
  let started: unknown
  await runProgram(
    {
      log: { info: add, warn: add, error: add },
      process: process as unknown as NonNullable<RunProgramDeps['process']>,
    },
    { name: 'example', about: 'Does nothing.' },
    async (settings) => {
      started = settings
      return { stop: async () => {} }
    },
  )
  return { stdout: stdout.join(''), stderr: stderr.join(''), exitCode: process.exitCode, lines, started }
}

test('without arguments it runs with its environment', async () => {
  expect(await run([], { PORT: '1' })).toMatchObject({ exitCode: 0, started: { PORT: '1' }, stdout: '', stderr: '' })
})

test('--help shows the usage, and starts nothing', async () => {
  const { stdout, exitCode, started } = await run(['--help'])
  expect(stdout).toMatch(/^usage: npm run example -- .*Does nothing\..*--config FILE.*Example: npm run example/s)
  expect([exitCode, started]).toEqual([0, undefined])
})

test.each([
  [['--conf', 'x'], 'Did you mean --config?'],
  [['.env'], "Unexpected argument '.env'"],
  [['--config'], '--config'],
])('%j: shows the fault and the usage, and exits with 2', async (args, words) => {
  const { stdout, stderr, exitCode, started } = await run(args)
  expect(stderr).toContain(words)
  expect(stderr).toContain('usage: npm run example')
  expect([stdout, exitCode, started]).toEqual(['', 2, undefined])
})

test('--config FILE: runs with the settings of the file; logs its faults one by one, and exits with 1', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-settings-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'settings')
  writeFileSync(path, 'PORT=8080\n')
  expect(await run(['--config', path], { PATH: '/bin' })).toMatchObject({ started: { PORT: '8080', PATH: '/bin' } })
  writeFileSync(path, 'PROT=1\nHOST\n')
  const { lines, exitCode, started } = await run(['--config', path])
  expect(lines.map(({ fault }) => fault)).toEqual(['line 1: unknown setting PROT', expect.stringContaining('line 2: ')])
  expect([exitCode, started]).toEqual([1, undefined])
  expect(await run(['--config', path], { NODE_ENV: 'production' })).toMatchObject({ exitCode: 1, started: undefined })
})
