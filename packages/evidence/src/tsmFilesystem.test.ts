import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { systemTsmFilesystem as filesystem } from './tsmFilesystem.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'countersign-tsm-'))
})
afterEach(() => rm(root, { recursive: true }))

test('creates and removes a directory, and both fail the second time', async () => {
  const entry = join(root, 'entry')
  await filesystem.mkdir(entry)
  await expect(filesystem.mkdir(entry)).rejects.toMatchObject({ code: 'EEXIST' })
  await filesystem.rmdir(entry)
  await expect(filesystem.rmdir(entry)).rejects.toMatchObject({ code: 'ENOENT' })
})

test('writing does not create a missing file', async () => {
  await expect(filesystem.write(join(root, 'inblob'), Uint8Array.of(1))).rejects.toMatchObject({ code: 'ENOENT' })
  expect(await readdir(root)).toEqual([])
})

test('writes to the file', async () => {
  const path = join(root, 'inblob')
  await writeFile(path, '')
  await filesystem.write(path, Uint8Array.of(1, 2, 3))
  expect([...(await readFile(path))]).toEqual([1, 2, 3])
})

test('reads up to the limit, and one more byte of a longer file', async () => {
  const path = join(root, 'outblob')
  await writeFile(path, new Uint8Array(1000).fill(7))
  expect(await filesystem.read(path, 1000)).toEqual(new Uint8Array(1000).fill(7))
  expect(await filesystem.read(path, 65_536)).toHaveLength(1000)
  expect(await filesystem.read(path, 999)).toHaveLength(1000)
  expect(await filesystem.read(path, 10)).toHaveLength(11)
})

test('an empty attribute reads as no bytes', async () => {
  const path = join(root, 'auxblob')
  await writeFile(path, '')
  expect(await filesystem.read(path, 10)).toEqual(new Uint8Array())
})
