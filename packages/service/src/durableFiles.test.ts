import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, realpath, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { onSync } from '../test/onSync.ts'
import { assertWritable, createFolder, writeNewFile } from './durableFiles.ts'

let folder: string
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'countersign-files-')))
})
afterEach(() => rm(folder, { recursive: true }))

const cutPower = () => {
  throw new Error('power failure')
}

describe('a new file', () => {
  const toFile = (text: string) => ({ path: join(folder, 'key'), text, mode: 0o600 })

  test('has its mode, and no other file stays in the folder', async () => {
    await writeNewFile(toFile('secret'))
    expect(await readFile(join(folder, 'key'), 'utf8')).toBe('secret')
    expect((await stat(join(folder, 'key'))).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['key'])
  })

  test('replaces no file: of ten concurrent calls, one succeeds', async () => {
    const texts = Array.from({ length: 10 }, (_, index) => `secret ${index}`)
    const results = await Promise.allSettled(texts.map((text) => writeNewFile(toFile(text))))
    const written = texts.filter((_, index) => results[index]?.status === 'fulfilled')
    expect(written).toEqual([await readFile(join(folder, 'key'), 'utf8')])
    await expect(writeNewFile(toFile('another'))).rejects.toMatchObject({ code: 'EEXIST' })
    expect(written).toEqual([await readFile(join(folder, 'key'), 'utf8')])
    expect(await readdir(folder)).toEqual(['key'])
  })

  test('is on disk before it gets its name, and the name before the call returns', async () => {
    const syncs: [string, boolean][] = []
    await onSync((path) => void syncs.push([relative(folder, path), existsSync(join(folder, 'key'))]))
    await writeNewFile(toFile('secret'))
    expect(syncs).toEqual([
      [expect.stringMatching(/^key\.[0-9a-f]{16}\.draft$/), false],
      ['', true],
    ])
  })

  test('does not exist if the power fails before it is on disk', async () => {
    await onSync(cutPower)
    await expect(writeNewFile(toFile('secret'))).rejects.toThrow('power failure')
    expect(await readdir(folder)).toEqual([])
  })

  test('assertWritable leaves no file, and throws if writing, linking or syncing would fail', async () => {
    const path = join(folder, 'key')
    await assertWritable({ path })
    await expect(assertWritable({ path: join(folder, 'missing/key') })).rejects.toMatchObject({ code: 'ENOENT' })
    // The draft already has the link's name.
    const random = (length: number) => new Uint8Array(length)
    await expect(assertWritable({ path, random })).rejects.toMatchObject({ code: 'EEXIST' })
    await onSync((synced) => (synced === dirname(path) ? cutPower() : undefined))
    await expect(assertWritable({ path })).rejects.toThrow('power failure')
    expect(await readdir(folder)).toEqual([])
  })
})

test('a new folder is only for its owner, and its name and those of new parents are on disk', async () => {
  const synced: string[] = []
  await onSync((path) => void synced.push(relative(folder, path)))
  await createFolder(join(folder, 'a/b/c'))
  expect(synced).toEqual(['a/b', 'a', ''])
  for (const name of ['a', 'a/b', 'a/b/c']) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o700)
  await createFolder(join(folder, 'a/b/d'))
  await createFolder(join(folder, 'a/b/d'))
  expect(synced.slice(3)).toEqual(['a/b'])
})
