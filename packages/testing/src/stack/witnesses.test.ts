import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createWitnessFolders, runWitness, startWitness, writeLogList } from './witnesses.ts'

let parent: string
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'countersign-witnesses-'))
})
afterEach(() => rm(parent, { recursive: true }))

test('creates witnesses once, each with its own key, and replaces leftovers of a killed start', async () => {
  const made = await createWitnessFolders(parent, 2)
  expect(made.map(({ name }) => name)).toEqual(['w1', 'w2'])
  expect(new Set(made.map(({ vkey }) => vkey)).size).toBe(2)
  const keys = await Promise.all(made.map(({ folder }) => readFile(join(folder, 'key.json'), 'utf8')))
  await mkdir(join(parent, 'w3.new'))
  await writeFile(join(parent, 'w3.new', 'key.json'), 'half a key')
  const more = await createWitnessFolders(parent, 3)
  expect(more.slice(0, 2)).toEqual(made)
  expect(await Promise.all(made.map(({ folder }) => readFile(join(folder, 'key.json'), 'utf8')))).toEqual(keys)
  expect((await readdir(parent)).toSorted()).toEqual(['w1', 'w2', 'w3'])
})

test('restarts a witness at its address, and fails to start without a log', async () => {
  const [folder] = await createWitnessFolders(parent, 1)
  if (folder === undefined) throw new Error('no witness')
  const logsFile = join(parent, 'logs')
  await writeLogList(logsFile, [])
  await expect(startWitness({ ...folder, logsFile }).started).rejects.toThrow('expected at least one log')
  // Any verifier key works.
  await writeLogList(logsFile, [folder.vkey])
  const witness = await runWitness(folder, { logsFile })
  const health = async () => (await fetch(`${witness.url}/health`)).status
  expect(await health()).toBe(200)
  await witness.kill('SIGKILL')
  expect(witness.pid()).toBeUndefined()
  await expect(health()).rejects.toThrow()
  await witness.start()
  expect(await health()).toBe(200)
  await witness.kill('SIGKILL')
})
