import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { origin, toCosigned, toText } from '../../../packages/log/src/logs.fake.ts'
import { type Files, openStore, toFileName } from './store.ts'

const older = toCosigned(toText(5))
const newer = toCosigned(toText(8))

describe('on a disk', () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'countersign-witness-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))
  const path = () => join(folder, toFileName(origin))

  test('what was saved is there after a start', async () => {
    const store = await openStore(folder, [origin])
    expect(store.latest(origin)).toBeUndefined()
    await store.save(origin, older)
    await store.save(origin, newer)
    expect(store.latest(origin)?.checkpoint.size).toBe(8)
    const again = await openStore(folder, [origin, 'other.example'])
    expect(again.latest(origin)?.note).toBe(newer)
    expect(again.latest('other.example')).toBeUndefined()
    expect(await readdir(folder)).toEqual([toFileName(origin)])
  })

  test('what a dying process left beside the file is passed over', async () => {
    await (await openStore(folder, [origin])).save(origin, older)
    await writeFile(`${path()}.new`, newer.slice(0, 20))
    const store = await openStore(folder, [origin])
    expect(store.latest(origin)?.note).toBe(older)
    await store.save(origin, newer)
    expect((await openStore(folder, [origin])).latest(origin)?.note).toBe(newer)
  })

  test.each([
    ['empty', ''],
    ['cut off', older.slice(0, 60)],
    ['of another log', older.replace(origin, 'other.example')],
    ['no checkpoint', 'a text\n\n— x AAAAAAA=\n'],
  ])('a file that is %s is not taken for none', async (_, text) => {
    await writeFile(path(), text)
    await expect(openStore(folder, [origin])).rejects.toThrow()
  })

  test('a folder that is gone is not made anew', async () => {
    await expect(openStore(join(folder, 'gone'), [origin])).rejects.toThrow('ENOENT')
  })

  test('what is no checkpoint is not saved', async () => {
    const store = await openStore(folder, [origin])
    await expect(store.save(origin, 'a text\n\n— x AAAAAAA=\n')).rejects.toThrow()
    expect(await readdir(folder)).toEqual([])
  })
})

/**
 * A disk that loses power: what was written and not synced may be there or not, and names may still lead to what they led to before the
 * folder was synced. Each file is a list of what it may hold, each name a list of files that it may lead to.
 */
function createWeakDisk(text: string, failAt: number) {
  const folder = '/w'
  const path = `${folder}/${toFileName(origin)}`
  type Inode = { now: string; durable: string[] }
  const names = new Map<string, { now: Inode; durable: Inode[] }>()
  const first = { now: text, durable: [text] }
  names.set(path, { now: first, durable: [first] })
  let steps = 0
  const step = () => {
    steps += 1
    if (steps === failAt) throw new Error('power failure')
  }
  const handle = (name: string) => ({
    async writeFile(content: string) {
      const inode = names.get(name)?.now as Inode
      // Any part of it may get to the disk by itself.
      inode.durable.push(content.slice(0, content.length / 2), content)
      inode.now = content
      step()
    },
    async sync() {
      step()
      if (name !== folder) {
        const inode = names.get(name)?.now as Inode
        inode.durable = [inode.now]
        return
      }
      for (const entry of names.values()) entry.durable = [entry.now]
    },
    close: async () => undefined,
  })
  const files = {
    async open(name: string, flags: string) {
      if (flags === 'w') {
        const inode = { now: '', durable: [''] }
        names.set(name, { now: inode, durable: [inode] })
        step()
      }
      return handle(name)
    },
    readFile: async () => text,
    async rename(from: string, to: string) {
      const moved = names.get(from)?.now as Inode
      const entry = names.get(to)
      names.set(to, { now: moved, durable: [...(entry?.durable ?? []), moved] })
      names.delete(from)
      step()
    },
  } as unknown as Files
  const afterFailure = () => [...new Set(names.get(path)?.durable.flatMap(({ durable }) => durable))]
  return { files, folder, afterFailure, steps: () => steps }
}

describe('when the power fails', () => {
  test('at any step the old checkpoint or the new one is left, whole; after the answer only the new one', async () => {
    const whole = createWeakDisk(older, Number.POSITIVE_INFINITY)
    await (await openStore(whole.folder, [origin], whole.files)).save(origin, newer)
    expect(whole.afterFailure()).toEqual([newer])
    // The folder is synced at the start too.
    expect(whole.steps()).toBe(6)
    for (let failAt = 2; failAt <= whole.steps(); failAt++) {
      const disk = createWeakDisk(older, failAt)
      const store = await openStore(disk.folder, [origin], disk.files)
      await expect(store.save(origin, newer)).rejects.toThrow('power failure')
      expect(store.latest(origin)?.note).toBe(older)
      for (const left of disk.afterFailure()) expect([older, newer]).toContain(left)
    }
  })
})
