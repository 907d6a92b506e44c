import { basename, dirname } from 'node:path'
import type { TsmFilesystem } from '../src/tsmFilesystem.ts'

type Entry = { generation: number; readGeneration: number; inblob: Uint8Array; privlevel: number; outblob?: Uint8Array }

export type FakeTsmParameters = {
  root: string
  provider?: string
  /** Creates the evidence, in place of the firmware. */
  outblob: (inblob: Uint8Array, privlevel: number) => Uint8Array
  /** Undefined hides the attribute, as on TDX. */
  auxblob?: Uint8Array
  privlevelFloor?: number
}

/** An operation as `read outblob`, `write inblob`, `mkdir` or `rmdir`. */
export type TsmOperation = string

/**
 * The report part of configfs-tsm, like drivers/virt/coco/guest/report.c: a generation that counts writes, evidence created at the first read
 * after a write, errors by errno. With `before`, tests run code ahead of an operation, which may throw, wait, or write like another process.
 */
export function createFakeTsm(parameters: FakeTsmParameters) {
  const { root, provider = 'tdx_guest', outblob, auxblob, privlevelFloor = 0 } = parameters
  const entries = new Map<string, Entry>()
  const names = new Set<string>()
  const operations: TsmOperation[] = []
  const before = new Map<TsmOperation, (entry: string) => void | Promise<void>>()
  let mostEntries = 0
  let evidenceMade = 0

  async function start(operation: TsmOperation, entry: string) {
    operations.push(operation)
    await before.get(operation)?.(entry)
  }

  function find(path: string): Entry {
    const entry = entries.get(dirname(path))
    if (!entry) throw errno('ENOENT')
    return entry
  }

  function store(entry: Entry, attribute: string, bytes: Uint8Array) {
    if (attribute === 'inblob') {
      if (bytes.length > 64) throw errno('EFBIG')
      entry.inblob = Uint8Array.from(bytes)
    } else if (attribute === 'privlevel' && auxblob) {
      const level = Number(new TextDecoder().decode(bytes))
      if (!Number.isInteger(level) || level < privlevelFloor || level > 3) throw errno('EINVAL')
      entry.privlevel = level
    } else {
      throw errno('ENOENT')
    }
    entry.generation++
  }

  function show(entry: Entry, attribute: string): Uint8Array {
    if (attribute === 'provider') return new TextEncoder().encode(`${provider}\n`)
    if (attribute === 'generation') return new TextEncoder().encode(`${entry.generation}\n`)
    if (attribute !== 'outblob' && !(attribute === 'auxblob' && auxblob)) throw errno('ENOENT')
    if (entry.inblob.length !== 64) throw errno('EINVAL')
    if (!entry.outblob || entry.readGeneration !== entry.generation) {
      evidenceMade++
      entry.outblob = outblob(entry.inblob, entry.privlevel)
      entry.readGeneration = entry.generation
    }
    return attribute === 'auxblob' && auxblob ? auxblob : entry.outblob
  }

  const filesystem: TsmFilesystem = {
    async mkdir(path) {
      await start('mkdir', path)
      if (dirname(path) !== root) throw errno('ENOENT')
      if (names.has(path)) throw errno('EEXIST')
      names.add(path)
      entries.set(path, { generation: 0, readGeneration: 0, inblob: new Uint8Array(), privlevel: 0 })
      mostEntries = Math.max(mostEntries, entries.size)
    },
    async write(path, bytes) {
      await start(`write ${basename(path)}`, dirname(path))
      store(find(path), basename(path), bytes)
    },
    async read(path, maxLength) {
      await start(`read ${basename(path)}`, dirname(path))
      return show(find(path), basename(path)).slice(0, maxLength + 1)
    },
    async rmdir(path) {
      await start('rmdir', path)
      if (!entries.delete(path)) throw errno('ENOENT')
    },
  }

  return {
    filesystem,
    operations,
    /** Runs `action` ahead of each such operation. */
    before: (operation: TsmOperation, action: (entry: string) => void | Promise<void>) => before.set(operation, action),
    /** Fails the next `times` such operations. */
    fail(operation: TsmOperation, code: string, times = Number.POSITIVE_INFINITY) {
      let left = times
      before.set(operation, () => {
        if (left-- > 0) throw errno(code)
      })
    },
    /** Writes like another process. */
    intrude: (path: string, inblob: Uint8Array) => store(find(`${path}/inblob`), 'inblob', inblob),
    entriesLeft: () => entries.size,
    entriesMade: () => names.size,
    mostEntries: () => mostEntries,
    evidenceMade: () => evidenceMade,
  }
}

export function errno(code: string): Error {
  return Object.assign(new Error(code), { code })
}
