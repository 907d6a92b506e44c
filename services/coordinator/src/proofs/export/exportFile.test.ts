import { promises } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createExportFile, writeAll } from './exportFile.ts'

describe('the file of an export', () => {
  let folder = ''
  let path = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-file-'))
    path = join(folder, 'audit.car')
  })
  afterEach(() => rm(folder, { recursive: true }))
  const create = async (text: string) => {
    const file = await createExportFile(path)
    for (const part of text) await file.append(Buffer.from(part))
    return file
  }

  test('gets its name when it is complete, with its start written last', async () => {
    const file = await create('?bc')
    expect(await readdir(folder)).not.toContain('audit.car')
    await file.finish(Buffer.from('a'))
    expect([await readdir(folder), await readFile(path, 'utf8'), file.size]).toEqual([['audit.car'], 'abc', 3])
  })

  test('rejects an existing file before writing, and does not change it', async () => {
    await writeFile(path, 'earlier')
    await expect(createExportFile(path)).rejects.toMatchObject({ code: 'file_exists' })
    expect([await readdir(folder), await readFile(path, 'utf8')]).toEqual([['audit.car'], 'earlier'])
  })

  test('of two runs for one name the first to finish gets it, and the second fails', async () => {
    const [first, second] = [await create('?first'), await create('?second')]
    await second.finish(Buffer.from('2'))
    await expect(first.finish(Buffer.from('1'))).rejects.toMatchObject({ code: 'file_exists' })
    await first.discard()
    expect([await readdir(folder), await readFile(path, 'utf8')]).toEqual([['audit.car'], '2second'])
  })

  test('leaves nothing behind when it is discarded', async () => {
    const file = await create('abc')
    await file.discard()
    expect(await readdir(folder)).toEqual([])
  })

  /** Fails like such a file system, until the test ends. */
  function refuseLinks(code: string) {
    const error = Object.assign(new Error(code), { code, syscall: 'link', path })
    const spy = vi.spyOn(promises, 'link').mockRejectedValue(error)
    syncBuiltinESMExports()
    onTestFinished(() => {
      spy.mockRestore()
      syncBuiltinESMExports()
    })
  }

  test.each([
    ['EPERM', 'links_missing'],
    ['ENOTSUP', 'links_missing'],
    ['ENOSPC', 'ENOSPC'],
  ])(
    'detects a file system that rejects links with %s at the start, and leaves nothing behind',
    async (code, expected) => {
      refuseLinks(code)
      await expect(createExportFile(path)).rejects.toMatchObject({ code: expected })
      expect(await readdir(folder)).toEqual([])
    },
  )

  test('passes on the system’s error for a missing folder', async () => {
    await expect(createExportFile(join(folder, 'none', 'audit.car'))).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('writing all', () => {
  /** Accepts at most this many bytes per write. */
  function createShort(atMost: number) {
    const written = Buffer.alloc(12, '.')
    const write = async (bytes: Uint8Array, offset: number, length: number, position: number) => {
      const bytesWritten = Math.min(length, atMost)
      written.set(bytes.subarray(offset, offset + bytesWritten), position)
      return { bytesWritten, buffer: bytes }
    }
    return { file: { write } as unknown as Parameters<typeof writeAll>[0], written }
  }

  test('a partial write continues', async () => {
    const { file, written } = createShort(3)
    await writeAll(file, Buffer.from('12345678'), 2)
    expect(written.toString()).toBe('..12345678..')
  })

  test('a full disk is an error, not an endless loop', async () => {
    await expect(writeAll(createShort(0).file, Buffer.from('1'), 0)).rejects.toThrow('the disk is full')
  })
})
