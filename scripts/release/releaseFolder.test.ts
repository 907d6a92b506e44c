import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseNote, parseVkey, toVkey } from '@countersign/log'
import { openReleaseLog, readReleaseLog } from '@countersign/verify'
import { expect, onTestFinished, test } from 'vitest'
import { createRecord } from '../../packages/verify/test/releases.ts'
import type { WitnessClient } from '../../services/coordinator/src/log/witnessClient.ts'
import { findTaggedCommit, recordRelease } from './recordRelease.ts'
import { addCosignatures, appendRecord } from './releaseFolder.ts'
import { createReleaseKey, readReleaseKey } from './releaseKey.ts'

const ROOT = join(import.meta.dirname, '../..')

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-release-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

const record = (release: string) => {
  const { version: _, ...members } = JSON.parse(new TextDecoder().decode(createRecord({ release })))
  return members
}

async function read(folder: string) {
  const files = await readReleaseLog(async (name) => readFileSync(join(folder, name)))
  if (files?.vkey === undefined) throw new Error('no log')
  return openReleaseLog(files, parseVkey(files.vkey))
}

test('appends records that a reader accepts, under a key that only its owner can read', async () => {
  const folder = createFolder()
  const log = join(folder, 'releases')
  const key = createReleaseKey(join(folder, 'key'))
  await appendRecord(log, record('0.2.0'), key)
  await appendRecord(log, record('0.2.1'), readReleaseKey(join(folder, 'key')))
  expect((await read(log)).map(({ release }) => release)).toEqual(['0.2.0', '0.2.1'])
  expect(readdirSync(log).toSorted()).toEqual(['0000.json', '0001.json', 'checkpoint', 'key'])
  expect(statSync(join(folder, 'key')).mode & 0o777).toBe(0o600)
  expect(() => createReleaseKey(join(folder, 'key'))).toThrow('EEXIST')
})

test('refuses a second record of a release, another key, and a log with a changed record', async () => {
  const folder = createFolder()
  const log = join(folder, 'releases')
  const key = createReleaseKey(join(folder, 'key'))
  await appendRecord(log, record('0.2.0'), key)
  await expect(appendRecord(log, record('0.2.0'), key)).rejects.toThrow('0.2.0 has a record')
  const other = createReleaseKey(join(folder, 'other'))
  await expect(appendRecord(log, record('0.2.1'), other)).rejects.toMatchObject({ code: 'note_unsigned' })
  writeFileSync(join(log, '0000.json'), createRecord({ commit: '00'.repeat(20) }))
  await expect(appendRecord(log, record('0.2.1'), key)).rejects.toMatchObject({ code: 'release_log_invalid' })
  expect(readdirSync(log)).toHaveLength(3)
})

test('keeps the checkpoint if a witness refuses, and sends it a consistency proof', async () => {
  const folder = createFolder()
  const log = join(folder, 'releases')
  const key = createReleaseKey(join(folder, 'key'))
  for (const release of ['0.2.0', '0.2.1', '0.2.2']) await appendRecord(log, record(release), key)
  const before = readFileSync(join(log, 'checkpoint'), 'utf8')
  const asked: [number, number, number][] = []
  const witness: WitnessClient = {
    key: key.key,
    async addCheckpoint({ size, likelySize, note, prove }) {
      asked.push([size, likelySize, (await prove(2)).length])
      expect(parseNote(note).signatures).toHaveLength(1)
      return { outcome: 'contradicts', reason: 'another history' }
    },
    stop: async () => {},
  }
  expect(await addCosignatures(log, [witness])).toEqual([`${key.key.name}: another history`])
  expect(asked).toEqual([[3, 2, 1]])
  expect(readFileSync(join(log, 'checkpoint'), 'utf8')).toBe(before)
})

test('records only a clean commit with the tag of its version', async () => {
  const root = createFolder()
  const git = (...args: string[]) => {
    const settings = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'commit.gpgsign=false']
    return execFileSync('git', [...settings, ...args], { cwd: root, encoding: 'utf8' }).trim()
  }
  for (const path of ['packages/a', 'apps', 'deploy/dstack']) mkdirSync(join(root, path), { recursive: true })
  writeFileSync(join(root, 'packages/a/package.json'), JSON.stringify({ name: 'a', version: '0.2.0' }))
  cpSync(join(ROOT, 'deploy/dstack/app-compose.json'), join(root, 'deploy/dstack/app-compose.json'))
  git('init', '--quiet')
  git('add', '.')
  git('commit', '--quiet', '-m', 'first')
  git('tag', 'v0.1.9')
  expect(findTaggedCommit(root)).toBeUndefined()
  git('tag', 'v0.2.0')
  const commit = findTaggedCommit(root)
  expect(commit).toEqual({ release: '0.2.0', commit: git('rev-parse', 'HEAD'), tree: git('rev-parse', 'HEAD^{tree}') })
  if (commit === undefined) return
  const folder = createFolder()
  const key = createReleaseKey(join(folder, 'key'))
  const deps = { now: () => new Date('2027-01-01T00:00:00Z'), createParts: async () => ({ images: [], verifiers: [] }) }
  await recordRelease(deps, { root, commit, folder: join(folder, 'log'), key })
  expect(await read(join(folder, 'log'))).toMatchObject([{ ...commit, recordedAt: '2027-01-01T00:00:00.000Z' }])
  expect(readFileSync(join(folder, 'log/key'), 'utf8')).toBe(`${toVkey(key.key)}\n`)
  writeFileSync(join(root, 'new'), '')
  expect(() => findTaggedCommit(root)).toThrow('the working tree has changes')
})
