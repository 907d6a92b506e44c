import { hash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCompleteProofs } from '../../test/store/finalProofs.ts'
import { freezeRow } from '../../test/store/rows.ts'
import { NOW, startTestStore, type TestStore } from '../../test/store/store.ts'
import { countReceipts, createRetentionStore, type RetentionStore } from './retention.ts'

const RESTRICT_VIOLATION = { code: '23001' }
const DAY = 86_400_000

describe('deleting receipts from the database', () => {
  let subject: TestStore
  let retention: RetentionStore
  beforeAll(async () => {
    subject = await startTestStore()
    retention = createRetentionStore(subject.database.db)
  })
  afterAll(() => subject.stop())

  const complete = (parameters: Partial<Parameters<typeof createCompleteProofs>[1]> = {}) =>
    createCompleteProofs(subject, { count: 1, now: NOW, ...parameters })
  const one = async (parameters: Parameters<typeof complete>[0] = {}) => {
    const [proof] = await complete(parameters)
    if (proof === undefined) throw new Error('there is no proof')
    return proof
  }
  const update = (slug: string, set: string) => subject.query(`update proofs set ${set} where slug = '${slug}'`)
  const listAll = async (before: number) => {
    const all: string[] = []
    for (let after = '-1', isOver = false; !isOver; ) {
      const page = await retention.listStored({ after, before, limit: 3 })
      all.push(...page.receipts.map(({ slug }) => slug))
      after = page.last
      isOver = page.isOver
    }
    return all
  }

  test('lists old, final receipts in the order of signing with the hash of their bytes, and no others', async () => {
    const early = NOW - 400 * DAY
    const old = await complete({ count: 7, now: early })
    const open = await complete({ count: 2, now: early, isFinal: false })
    const young = await complete({ count: 2, now: early + 2 * DAY })
    const before = early + DAY
    const listed = await listAll(before)
    expect(listed).toEqual(old.map(({ slug }) => slug))
    expect(listed).not.toContain(open[0]?.slug)
    expect(listed).not.toContain(young[0]?.slug)
    const { receipts } = await retention.listStored({ after: '-1', before, limit: 1 })
    expect(receipts).toEqual([
      { slug: old[0]?.slug, cid: old[0]?.cid, hash: hash('sha256', old[0]?.bytes ?? new Uint8Array()) },
    ])
    // For the tests below.
    expect(await retention.dropReceipts(listed)).toBe(7)
    expect(await listAll(before)).toEqual([])
  })

  test('deletes the bytes once and keeps everything else', async () => {
    const { slug, bytes } = await one()
    const before = await subject.store.findProof(slug)
    expect(before?.receipt && Buffer.from(before.receipt).equals(bytes)).toBe(true)
    expect([await retention.dropReceipts([slug]), await retention.dropReceipts([slug])]).toEqual([1, 0])
    const { receipt: _, ...rest } = before ?? {}
    expect(await subject.store.findProof(slug)).toEqual({ ...rest, receipt: null, isDropped: true })
  })

  test('deletes nothing for an empty list or unknown slugs', async () => {
    expect([await retention.dropReceipts([]), await retention.dropReceipts(['nothing'])]).toEqual([0, 0])
  })

  test('keeps the receipt of a proof that is not final, and deletes the others', async () => {
    const final = await one()
    const open = await one({ isFinal: false })
    await expect(retention.dropReceipts([final.slug, open.slug])).rejects.toMatchObject(RESTRICT_VIOLATION)
    for (const { slug } of [final, open]) expect((await subject.store.findProof(slug))?.receipt).not.toBeNull()
  })

  test.each(['receipt_dropped = null', 'receipt_dropped = 0', `ipfs_cid = 'bafkother'`, 'publication_id = null'])(
    'a deleted receipt can neither return nor change: %s',
    async (change) => {
      const { slug } = await one()
      await retention.dropReceipts([slug])
      await expect(update(slug, change)).rejects.toMatchObject(RESTRICT_VIOLATION)
      await expect(freezeRow(subject.database.db, slug)).rejects.toMatchObject(RESTRICT_VIOLATION)
      expect(await subject.store.findProof(slug)).toMatchObject({ isDropped: true, onchainBlockNumber: 7 })
    },
  )

  test('a stored receipt can neither change nor count as deleted', async () => {
    const { slug } = await one()
    await expect(update(slug, 'receipt_dropped = 5')).rejects.toMatchObject(RESTRICT_VIOLATION)
    const change = `update receipts set bytes = 'other' where signing_id = (select signing_id from proofs where slug = '${slug}')`
    await expect(subject.query(change)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test('two concurrent workers delete each receipt once', async () => {
    const proofs = await complete({ count: 20 })
    const slugs = proofs.map(({ slug }) => slug)
    const counts = await Promise.all([slugs, slugs.toReversed(), slugs].map((some) => retention.dropReceipts(some)))
    // A worker that found locked rows may have left some to the other.
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20)
  })

  test('counts the space of stored and deleted receipts', async () => {
    const before = await countReceipts(subject.database.db)
    const proofs = await complete({ count: 3, length: 20_000 })
    const held = await countReceipts(subject.database.db)
    expect(held.held.receipts - before.held.receipts).toBe(3)
    const bytes = held.held.bytes - before.held.bytes
    expect(bytes).toBeGreaterThan(10_000)
    await retention.dropReceipts(proofs.slice(1).map(({ slug }) => slug))
    const after = await countReceipts(subject.database.db)
    expect(after.held.receipts).toBe(held.held.receipts - 2)
    expect(after.dropped.receipts).toBe(held.dropped.receipts + 2)
    // The sums are equal, apart from headers of compressed values.
    const [all, earlier] = [after, held].map((count) => count.held.bytes + count.dropped.bytes) as [number, number]
    expect(Math.abs(all - earlier)).toBeLessThan(100)
    expect(after.databaseBytes).toBeGreaterThan(0)
  })
})
