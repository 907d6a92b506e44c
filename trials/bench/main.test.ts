import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import type { Report } from './report.ts'

const run = promisify(execFile)
const ROOT = resolve(import.meta.dirname, '../..')

test('sign --budget finds the threads of both services, and a stage for nearly all that they do', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-budget-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const json = join(folder, 'budget.json')
  const argv = ['-C', 'source', 'trials/bench/main.ts', 'sign', '--budget', '--quick', '--rounds', '1']
  const { stdout } = await run(process.execPath, [...argv, '--json', json, '--plots', folder], { cwd: ROOT })
  expect(stdout).toContain('| coordinator, main thread: ')
  expect(await readFile(join(folder, 'budget.svg'), 'utf8')).toContain('coordinator, main thread')
  const { reports, failed } = JSON.parse(await readFile(json, 'utf8')) as { reports: Report[]; failed: string[] }
  expect(failed).toEqual([])
  const [{ suite, rows }] = reports as [Report]
  expect(suite).toBe('budget')
  const toMs = (name: string) => rows.find((row) => row.name === name)?.value ?? 0
  for (const thread of [
    'coordinator, main thread',
    'coordinator, signature worker',
    'enclave, main thread',
    'enclave, key worker',
  ]) {
    expect(toMs(thread)).toBeGreaterThan(0)
    // A file that was renamed is missing in the table of stages.
    expect(toMs(`${thread}: other`)).toBeLessThan(0.2 * toMs(thread))
  }
})
