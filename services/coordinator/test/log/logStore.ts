import { hash as computeHash } from 'node:crypto'
import { appendLeaves, createLeafReader, emptyFrontier, encodeBundle, encodeTile, TILE_WIDTH } from '@countersign/log'
import { equalBytes, hashTreeLeaf, toHex } from '@countersign/protocol'
import { CoordinatorError } from '../../src/errors.ts'
import type { CosignedNote, LogStore } from '../../src/store/logs.ts'

type StoredLog = {
  origin: string
  key: string
  entries: Uint8Array[]
  checkpoints: { size: number; note: string; bootId: string }[]
  notes: CosignedNote[]
  turn: Promise<unknown>
}

/** Rows of logs in memory that several coordinators can share. Only counts claims, because the real store's tests cover them. */
export function createFakeLogStore() {
  const logs = new Map<string, StoredLog>()
  const fake = {
    logs,
    claims: [] as string[],
    givenUp: [] as string[],
    deletedBefore: [] as number[],
    calls: { appendLog: 0, deleteClaims: 0, findLogHead: 0, readTiles: 0, insertNote: 0 },
    /** The next call throws this. */
    failure: undefined as Error | undefined,
    /** A copy, to restore the database later. */
    save: () => structuredClone([...logs].map(([name, { turn: _, ...rest }]) => [name, rest] as const)),
    restore(saved: [string, Omit<StoredLog, 'turn'>][] | readonly (readonly [string, Omit<StoredLog, 'turn'>])[]) {
      logs.clear()
      for (const [name, rest] of structuredClone([...saved])) logs.set(name, { ...rest, turn: Promise.resolve() })
    },
  }
  const get = (hash: string) => logs.get(hash)
  const count = (name: keyof typeof fake.calls) => {
    fake.calls[name] += 1
    if (fake.failure !== undefined) throw fake.failure
  }
  const store: LogStore = {
    async appendLog({ origin, key, bootId, from, entries, checkpoint, claims }) {
      count('appendLog')
      const hash = computeHash('sha256', origin, 'hex')
      const log = get(hash) ?? { origin, key, entries: [], checkpoints: [], notes: [], turn: Promise.resolve() }
      if (from > log.entries.length) return { missing: log.entries.length }
      for (const [index, entry] of entries.entries()) {
        const written = log.entries[from + index]
        if (written !== undefined && !equalBytes(written, entry)) {
          throw new CoordinatorError('attestation_invalid', 'another history of this log is recorded')
        }
      }
      logs.set(hash, log)
      log.entries.push(...entries.slice(log.entries.length - from))
      const { size, note } = checkpoint
      if (!log.checkpoints.some((one) => one.size === size)) log.checkpoints.push({ size, note, bootId })
      fake.claims.push(...claims.map(({ leaf }) => leaf))
      return { lost: [] }
    },
    async releaseClaims(claims) {
      fake.givenUp.push(...claims.map(({ leaf }) => leaf))
    },
    async deleteClaims(before) {
      count('deleteClaims')
      fake.deletedBefore.push(before)
    },
    listLogs: async () =>
      [...logs].map(([hash, { origin, key, entries }]) => ({ hash, origin, key, size: entries.length })),
    async findLogHead(hash) {
      count('findLogHead')
      const log = get(hash)
      const written = log?.checkpoints.toSorted((left, right) => right.size - left.size)[0]
      if (log === undefined || written === undefined) return undefined
      const { hashes } = appendLeaves(emptyFrontier, log.entries.slice(0, written.size).map(hashTreeLeaf))
      return { written: { ...written, hashes }, cosigned: log.notes.toSorted((a, b) => b.size - a.size)[0] }
    },
    async findTable(hash) {
      count('findLogHead')
      const log = get(hash)
      const written = log?.checkpoints.toSorted((left, right) => right.size - left.size)[0]
      return log && written && { ...written, entry: toHex(log.entries[written.size - 1] as Uint8Array), states: [] }
    },
    readNodes: async (hash) => createLeafReader((get(hash)?.entries ?? []).map(hashTreeLeaf)),
    findCosigned: async (hash) => get(hash)?.notes.toSorted((a, b) => b.size - a.size)[0],
    async insertNote({ hash, size, note }) {
      count('insertNote')
      const log = get(hash)
      if (!log?.checkpoints.some((one) => one.size === size)) throw new Error('the checkpoint is not written')
      log.notes.push({ size, note })
    },
    async readTiles(hash, tiles) {
      count('readTiles')
      const read = createLeafReader((get(hash)?.entries ?? []).map(hashTreeLeaf))
      return tiles.map(({ level, index, width }) =>
        encodeTile(
          Array.from({ length: width }, (_, at) => read({ level: 8 * level, index: index * TILE_WIDTH + at })),
        ),
      )
    },
    async readBundle(hash, { index, width }) {
      const first = index * TILE_WIDTH
      const entries = get(hash)?.entries.slice(first, first + width)
      return entries?.length === width ? encodeBundle(entries) : undefined
    },
    exclusively(hash, run) {
      if (fake.failure !== undefined) return Promise.reject(fake.failure)
      const log = get(hash)
      if (log === undefined) return run()
      const result = log.turn.then(run)
      log.turn = result.catch(() => undefined)
      return result
    },
  }
  return Object.assign(fake, store)
}

export type FakeLogStore = ReturnType<typeof createFakeLogStore>
