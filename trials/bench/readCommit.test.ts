import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { readCommit } from './readCommit.ts'

async function createFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-commit-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

test('says what is checked out, and whether it was changed', async () => {
  const folder = await createFolder()
  const git = (...parameters: string[]) => promisify(execFile)('git', ['-C', folder, ...parameters])
  await git('init', '--quiet')
  expect(await readCommit(folder)).toBe('no commit')
  await git('-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', '--allow-empty', '--message', 'first')
  expect(await readCommit(folder)).toMatch(/^commit [0-9a-f]{8}$/)
  await writeFile(join(folder, 'new'), '')
  expect(await readCommit(folder)).toMatch(/^commit [0-9a-f]{8}, changed$/)
})

test('a folder outside of any checkout has no commit, and neither has one that is not there', async () => {
  const folder = await createFolder()
  expect(await readCommit(folder)).toBe('no commit')
  expect(await readCommit(join(folder, 'nowhere'))).toBe('no commit')
})
