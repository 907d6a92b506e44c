import { hash } from 'node:crypto'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { createFakeClock, createFakeLog } from '../../test/ports.ts'
import { CoordinatorError } from '../errors.ts'
import type { RetentionStore, StoredReceipt } from '../store/retention.ts'
import { createDropper, type DropDeps } from './dropReceipts.ts'
import { PinError, type PinErrorCode } from './ipfs/pinError.ts'

const DAY = 86_400_000
const HOUR = 3_600_000

/** Rows in memory, oldest first, and a node with their blocks. */
function create({ count, ...changes }: { count: number } & Partial<DropDeps>) {
  const clock = createFakeClock()
  const log = createFakeLog()
  const blocks = new Map<string, Uint8Array<ArrayBuffer>>()
  const rows = Array.from({ length: count }, (_, index) => {
    const bytes = new Uint8Array(Buffer.from(`{"receipt":${index}}`))
    const receipt = { slug: `slug${index}`, cid: toCid(bytes), hash: hash('sha256', bytes) }
    blocks.set(receipt.cid, bytes)
    return { receipt, isHeld: true }
  })
  const asked: { after: string; before: number }[] = []
  const store: RetentionStore = {
    async listStored({ after, before, limit }) {
      asked.push({ after, before })
      const found = rows.map((row, id) => ({ ...row, id })).filter(({ id, isHeld }) => isHeld && id > Number(after))
      const page = found.slice(0, limit)
      return {
        receipts: page.map(({ receipt }) => receipt),
        last: String(page.at(-1)?.id ?? after),
        isOver: page.length < limit,
      }
    },
    async dropReceipts(slugs) {
      const wanted = rows.filter(({ receipt, isHeld }) => isHeld && slugs.includes(receipt.slug))
      for (const row of wanted) row.isHeld = false
      return wanted.length
    },
  }
  let reads = 0
  const pinner: DropDeps['pinner'] = {
    async readPinned(cid) {
      reads += 1
      const bytes = blocks.get(cid)
      if (bytes === undefined) throw new PinError('pin_not_found')
      return bytes
    },
  }
  const rebuild: DropDeps['rebuild'] = async (slug) => {
    const row = rows.find(({ receipt }) => receipt.slug === slug)
    return row && { cid: row.receipt.cid, bytes: new Uint8Array() }
  }
  const deps = { store, pinner, rebuild, clock, log, retentionMs: 30 * DAY, pageSize: 10 }
  const dropper = createDropper({ ...deps, ...changes })
  const toRow = (index: number): StoredReceipt => rows[index]?.receipt ?? { slug: '', cid: '', hash: '' }
  const held = () => rows.filter(({ isHeld }) => isHeld).map(({ receipt }) => receipt.slug)
  return { dropper, clock, log, blocks, rows, asked, held, toRow, countReads: () => reads, deps }
}

describe('dropping receipts', () => {
  test('drops each receipt after reading it back, page by page, and reads only old ones', async () => {
    const { dropper, held, asked, clock, countReads } = create({ count: 25 })
    expect(await dropper.run()).toEqual({ dropped: 25, kept: 0 })
    expect([held(), countReads()]).toEqual([[], 25])
    expect(new Set(asked.map(({ before }) => before))).toEqual(new Set([clock.now() - 30 * DAY]))
  })

  test.each<[PinErrorCode]>([['pin_not_found'], ['pin_unavailable'], ['pin_mismatch'], ['pin_refused']])(
    'what cannot be read stays, the others go: %s',
    async (code) => {
      const lost = new Set<string>()
      const subject = create({
        count: 12,
        pinner: {
          async readPinned(cid) {
            if (lost.has(cid)) throw new PinError(code)
            return subject.blocks.get(cid) ?? new Uint8Array()
          },
        },
      })
      for (const index of [0, 5, 11]) lost.add(subject.toRow(index).cid)
      expect(await subject.dropper.run()).toEqual({ dropped: 9, kept: 0 })
      expect(subject.held()).toEqual(['slug0', 'slug5', 'slug11'])
      subject.clock.advance(HOUR)
      expect(await subject.dropper.run()).toEqual({ dropped: 0, kept: 3 })
      expect(subject.log.lines).toContainEqual(
        expect.objectContaining({ level: 'warn', count: 3, reason: `${code} (3)` }),
      )
    },
  )

  test('keeps a receipt whose bytes differ, even under the right CID', async () => {
    const { dropper, blocks, held, toRow } = create({ count: 3 })
    blocks.set(toRow(1).cid, new Uint8Array(Buffer.from('{"receipt":"another"}')))
    expect(await dropper.run()).toEqual({ dropped: 2, kept: 0 })
    expect(held()).toEqual(['slug1'])
  })

  test.each<[string, DropDeps['rebuild']]>([
    ['another one', async () => ({ cid: 'another', bytes: new Uint8Array() })],
    ['none', async () => undefined],
    ['an error', () => Promise.reject(new Error('a row is not whole'))],
  ])('keeps a receipt whose rows give %s without reading it, and drops the others', async (_, fail) => {
    const subject = create({
      count: 40,
      rebuild: (slug) => (others.has(slug) ? fail(slug) : subject.deps.rebuild(slug)),
    })
    // More than a page, so that the whole page stays.
    const others = new Set(Array.from({ length: 25 }, (_, index) => `slug${index}`))
    expect(await subject.dropper.run()).toEqual({ dropped: 15, kept: 0 })
    expect([subject.held(), subject.countReads()]).toEqual([[...others], 15])
    subject.clock.advance(HOUR)
    expect(await subject.dropper.run()).toEqual({ dropped: 0, kept: 25 })
    expect(subject.log.lines).toContainEqual(
      expect.objectContaining({ level: 'warn', msg: 'Kept receipts that could not be rebuilt', count: 25 }),
    )
  })

  test('with one node per worker, counts a receipt as kept only if both nodes lost it for an hour', async () => {
    const mine = new Set<string>()
    const subject = create({
      count: 12,
      pinner: {
        readPinned: (cid) =>
          mine.has(cid) ? subject.deps.pinner.readPinned(cid, signal) : Promise.reject(new PinError('pin_not_found')),
      },
    })
    const signal = { signal: new AbortController().signal }
    for (const index of [0, 2, 4, 6, 8, 10]) mine.add(subject.toRow(index).cid)
    subject.blocks.delete(subject.toRow(3).cid)
    const other = createDropper(subject.deps)
    expect(await subject.dropper.run()).toEqual({ dropped: 6, kept: 0 })
    expect(await other.run()).toEqual({ dropped: 5, kept: 0 })
    for (const _ of [1, 2]) {
      subject.clock.advance(HOUR)
      expect([await subject.dropper.run(), await other.run()]).toEqual(Array(2).fill({ dropped: 0, kept: 1 }))
    }
    expect(subject.log.lines.filter(({ level }) => level === 'warn')).toHaveLength(4)
  })

  test('does not count receipts that were read just before the pass restarts', async () => {
    const { dropper, blocks, clock } = create({ count: 1 })
    blocks.clear()
    clock.advance(HOUR - 1)
    expect(await dropper.run()).toEqual({ dropped: 0, kept: 0 })
    clock.advance(1)
    expect(await dropper.run()).toEqual({ dropped: 0, kept: 0 })
    clock.advance(HOUR)
    expect(await dropper.run()).toEqual({ dropped: 0, kept: 1 })
  })

  test('asks a service that returns nothing for only one page', async () => {
    const { dropper, blocks, held, countReads, clock } = create({ count: 40 })
    const all = new Map(blocks)
    blocks.clear()
    expect(await dropper.run()).toEqual({ dropped: 0, kept: 0 })
    expect(countReads()).toBe(10)
    for (const [cid, bytes] of all) blocks.set(cid, bytes)
    expect(await dropper.run()).toEqual({ dropped: 30, kept: 0 })
    // Skipped receipts are read again after an hour, not in every round.
    expect(await dropper.run()).toEqual({ dropped: 0, kept: 0 })
    clock.advance(HOUR)
    expect(await dropper.run()).toEqual({ dropped: 10, kept: 0 })
    expect(held()).toEqual([])
  })

  test('aborts a read that never ends and keeps the receipt', async () => {
    const never = new Promise<never>(() => {})
    const deadlines: AbortController[] = []
    const createDeadline = () => {
      const deadline = new AbortController()
      deadlines.push(deadline)
      return deadline.signal
    }
    const subject = create({ count: 2, createDeadline, pinner: { readPinned: () => never } })
    const running = subject.dropper.run()
    await expect.poll(() => deadlines).toHaveLength(2)
    for (const deadline of deadlines) deadline.abort()
    expect(await running).toEqual({ dropped: 0, kept: 0 })
    expect(subject.held()).toHaveLength(2)
  })

  test('fails the round if the database fails, and counts nothing as dropped', async () => {
    const subject = create({ count: 2 })
    const store = {
      ...subject.deps.store,
      dropReceipts: () => Promise.reject(new CoordinatorError('database_unavailable', 'gone')),
    }
    const dropper = createDropper({ ...subject.deps, store })
    await expect(dropper.run()).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(subject.held()).toHaveLength(2)
  })

  test('starts no read after stop', async () => {
    const { dropper, countReads } = create({ count: 5 })
    dropper.stop()
    expect([await dropper.run(), countReads()]).toEqual([{ dropped: 0, kept: 0 }, 0])
  })
})
