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

  test('has its name when it is whole, with its start written last', async () => {
    const file = await create('?bc')
    expect(await readdir(folder)).not.toContain('audit.car')
    await file.finish(Buffer.from('a'))
    expect([await readdir(folder), await readFile(path, 'utf8'), file.size]).toEqual([['audit.car'], 'abc', 3])
  })

  test('one that is there already stays as it is, and is refused before anything is written', async () => {
    await writeFile(path, 'earlier')
    await expect(createExportFile(path)).rejects.toMatchObject({ code: 'file_exists' })
    expect([await readdir(folder), await readFile(path, 'utf8')]).toEqual([['audit.car'], 'earlier'])
  })

  test('two runs for one name write two files: the first to finish has it, the second is refused', async () => {
    const [first, second] = [await create('?first'), await create('?second')]
    await second.finish(Buffer.from('2'))
    await expect(first.finish(Buffer.from('1'))).rejects.toMatchObject({ code: 'file_exists' })
    await first.discard()
    expect([await readdir(folder), await readFile(path, 'utf8')]).toEqual([['audit.car'], '2second'])
  })

  test('given up, it leaves nothing behind', async () => {
    const file = await create('abc')
    await file.discard()
    expect(await readdir(folder)).toEqual([])
  })

  /** As a file system does, until the test ends. */
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
    'a file system that refuses links with %s shows before the work, and nothing is left behind',
    async (code, expected) => {
      refuseLinks(code)
      await expect(createExportFile(path)).rejects.toMatchObject({ code: expected })
      expect(await readdir(folder)).toEqual([])
    },
  )

  test('a folder that is not there is an error of the system', async () => {
    await expect(createExportFile(join(folder, 'none', 'audit.car'))).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('writing all', () => {
  /** Takes at most so many bytes at one time. */
  function createShort(atMost: number) {
    const written = Buffer.alloc(12, '.')
    const write = async (bytes: Uint8Array, offset: number, length: number, position: number) => {
      const bytesWritten = Math.min(length, atMost)
      written.set(bytes.subarray(offset, offset + bytesWritten), position)
      return { bytesWritten, buffer: bytes }
    }
    return { file: { write } as unknown as Parameters<typeof writeAll>[0], written }
  }

  test('what one write did not take is written by the next', async () => {
    const { file, written } = createShort(3)
    await writeAll(file, Buffer.from('12345678'), 2)
    expect(written.toString()).toBe('..12345678..')
  })

  test('a file that takes nothing more is an error, not an endless loop', async () => {
    await expect(writeAll(createShort(0).file, Buffer.from('1'), 0)).rejects.toThrow('the disk is full')
  })
})
