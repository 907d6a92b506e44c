import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { onSync } from '../../../packages/service/test/onSync.ts'
import { keyFile } from '../test/witness.ts'
import { lockFolder } from './lockFolder.ts'
import { createWitnessFolder, toKeyPath, toStorePath } from './witnessFolder.ts'

let parent: string
let folder: string
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'countersign-witness-'))
  folder = join(parent, 'w')
})
afterEach(() => rm(parent, { recursive: true }))

test('only the owner can read the key, it is never overwritten, and one process at a time uses the folder', async () => {
  await createWitnessFolder(folder, keyFile)
  expect((await stat(toKeyPath(folder))).mode & 0o777).toBe(0o600)
  expect(await readdir(toStorePath(folder))).toEqual([])
  await expect(createWitnessFolder(folder, 'another key')).rejects.toThrow('already exists')
  expect(await readFile(toKeyPath(folder), 'utf8')).toBe(keyFile)
  const unlock = await lockFolder(folder)
  await expect(lockFolder(folder)).rejects.toThrow('another process')
  await unlock()
  await (await lockFolder(folder))()
})

test('after a power failure there is a complete key or none, and the next try creates what is missing', async () => {
  let failAt = Number.POSITIVE_INFINITY
  let synced: number[] = []
  await onSync(async (path) => {
    if (synced.length + 1 === failAt) throw new Error('power failure')
    synced.push((await stat(path)).ino)
  })
  await createWitnessFolder(folder, keyFile)
  const steps = synced.length
  // The key, and the folder with its name.
  expect(steps).toBeGreaterThanOrEqual(2)
  for (let step = 1; step <= steps; step++) {
    const cut = join(parent, `w${step}`)
    failAt = step
    synced = []
    await expect(createWitnessFolder(cut, keyFile)).rejects.toThrow('power failure')
    failAt = Number.POSITIVE_INFINITY
    const key = await stat(toKeyPath(cut)).catch(() => undefined)
    // Any part of unsynced bytes may be lost.
    if (key !== undefined) expect(synced).toContain(key.ino)
    else await createWitnessFolder(cut, keyFile)
    expect(await readFile(toKeyPath(cut), 'utf8')).toBe(keyFile)
    expect((await readdir(cut)).toSorted()).toEqual(['checkpoints', 'key.json'])
  }
})

test('does not create a folder for checkpoints next to a key whose checkpoints were lost', async () => {
  await createWitnessFolder(folder, keyFile)
  await rm(toStorePath(folder), { recursive: true })
  await expect(createWitnessFolder(folder, keyFile)).rejects.toThrow('already exists')
  expect(await readdir(folder)).toEqual(['key.json'])
})
