import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashOrigin, parseCheckpoint } from '@countersign/log'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { origin, toCosigned, toText } from '../../../packages/log/test/logs.ts'
import { type Files, openStore } from './store.ts'

const toStored = (size: number) => {
  const text = toText(size)
  return { checkpoint: parseCheckpoint(text), note: toCosigned(text) }
}
const older = toStored(5)
const newer = toStored(8)

describe('on a disk', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-witness-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))
  const path = () => join(folder, hashOrigin(origin))

  test('saved checkpoints survive a restart', async () => {
    const store = openStore(folder)
    expect(store.latest(hashOrigin(origin))).toBeUndefined()
    store.save(older)
    store.save(newer)
    expect(store.latest(hashOrigin(origin))?.checkpoint.size).toBe(8)
    const again = openStore(folder)
    expect(again.latest(hashOrigin(origin))?.note).toBe(newer.note)
    expect(again.latest(hashOrigin('other.example'))).toBeUndefined()
    expect(await readdir(folder)).toEqual([hashOrigin(origin)])
  })

  test('ignores the temporary file of a killed process', async () => {
    openStore(folder).save(older)
    await writeFile(`${path()}.new`, newer.note.slice(0, 20))
    const store = openStore(folder)
    expect(store.latest(hashOrigin(origin))?.note).toBe(older.note)
    store.save(newer)
    expect(openStore(folder).latest(hashOrigin(origin))?.note).toBe(newer.note)
  })

  test.each([
    ['empty', ''],
    ['cut off', older.note.slice(0, 60)],
    ['of another log', older.note.replace(origin, 'other.example')],
    ['no checkpoint', 'a text\n\n— x AAAAAAA=\n'],
  ])('fails for a file that is %s', async (_, text) => {
    await writeFile(path(), text)
    expect(() => openStore(folder)).toThrow()
  })

  test('does not create a missing folder', () => {
    expect(() => openStore(join(folder, 'gone'))).toThrow('ENOENT')
  })
})

/**
 * Simulates a disk that loses power: unsynced content may be lost, and names may still point to earlier files until the folder is synced.
 * Each file is a list of its possible contents, each name a list of its possible files.
 */
function createWeakDisk(text: string, failAt: number) {
  const folder = '/w'
  const path = `${folder}/${hashOrigin(origin)}`
  type Inode = { now: string; durable: string[] }
  const names = new Map<string, { now: Inode; durable: Inode[] }>()
  const first = { now: text, durable: [text] }
  names.set(path, { now: first, durable: [first] })
  let steps = 0
  const step = () => {
    steps += 1
    if (steps === failAt) throw new Error('power failure')
  }
  // The number of an open file is its index here.
  const opened: string[] = []
  let open = 0
  const nameOf = (file: number) => opened[file] as string
  const files = {
    openSync(name: string, flags: string) {
      if (flags === 'w') {
        const inode = { now: '', durable: [''] }
        names.set(name, { now: inode, durable: [inode] })
        step()
      }
      open += 1
      return opened.push(name) - 1
    },
    writeFileSync(file: number, content: string) {
      const inode = names.get(nameOf(file))?.now as Inode
      // Any part of it may be on disk already.
      inode.durable.push(content.slice(0, content.length / 2), content)
      inode.now = content
      step()
    },
    fsyncSync(file: number) {
      step()
      if (nameOf(file) !== folder) {
        const inode = names.get(nameOf(file))?.now as Inode
        inode.durable = [inode.now]
        return
      }
      for (const entry of names.values()) entry.durable = [entry.now]
    },
    closeSync() {
      open -= 1
    },
    readFileSync: () => text,
    readdirSync: () => [hashOrigin(origin)],
    renameSync(from: string, to: string) {
      const moved = names.get(from)?.now as Inode
      const entry = names.get(to)
      names.set(to, { now: moved, durable: [...(entry?.durable ?? []), moved] })
      names.delete(from)
      step()
    },
  } as unknown as Files
  const afterFailure = () => [...new Set(names.get(path)?.durable.flatMap(({ durable }) => durable))]
  return { files, folder, afterFailure, steps: () => steps, countOpen: () => open }
}

describe('after a power failure', () => {
  test('at any step the complete old or new checkpoint is left, and after the response only the new one', () => {
    const whole = createWeakDisk(older.note, Number.POSITIVE_INFINITY)
    openStore(whole.folder, whole.files).save(newer)
    expect(whole.afterFailure()).toEqual([newer.note])
    expect(whole.countOpen()).toBe(0)
    // The folder is also synced at the start.
    expect(whole.steps()).toBe(6)
    for (let failAt = 2; failAt <= whole.steps(); failAt++) {
      const disk = createWeakDisk(older.note, failAt)
      const store = openStore(disk.folder, disk.files)
      expect(() => store.save(newer)).toThrow('power failure')
      expect(store.latest(hashOrigin(origin))?.note).toBe(older.note)
      expect(disk.countOpen()).toBe(0)
      for (const left of disk.afterFailure()) expect([older.note, newer.note]).toContain(left)
    }
  })
})
