import { randomBytes } from 'node:crypto'
import { createInclusionPaths, fromHex, toHex } from '@countersign/protocol'
import { MAX_RECEIPT_BYTES, toCid } from '@countersign/receipt'
import { CompiledQuery, createQueryId, type RootOperationNode, sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findProofRow } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { assembleReceipt } from '../publish/assembleReceipt.ts'
import type { SigningBatch } from './batches.ts'
import { type Jobs, PIN_QUEUE, PUBLISH_QUEUE } from './jobs.ts'
import { createPinningStore, type PinningStore } from './pinning.ts'
import type { Wallet } from './wallets.ts'

const CID = toCid(Buffer.from('a receipt'))

type Plan = { 'Node Type': string; 'Index Name'?: string; Plans?: Plan[] }

/** Ignores scans of no table. A bitmap heap scan reads only what its index found. */
const HARMLESS = ['Bitmap Heap Scan', 'CTE Scan', 'Function Scan']

/** Plan nodes that read a table or an index. */
function findScans(plan: Plan | undefined): Plan[] {
  if (plan === undefined) return []
  const isScan = / Scan$/.test(plan['Node Type']) && !HARMLESS.includes(plan['Node Type'])
  return [...(isScan ? [plan] : []), ...(plan.Plans ?? []).flatMap(findScans)]
}

describe('pinning', () => {
  let subject: TestStore
  let pinning: PinningStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    pinning = createPinningStore({ db: subject.database.db, jobs: subject.jobs })
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())
  // At most one job waits, so a job of an earlier test would hide the next one.
  beforeEach(() => sql`delete from pgboss.job`.execute(subject.database.db))

  const insert = async (changes: Partial<SigningBatch> = {}) => {
    const batch = createTestBatch(changes)
    const signing = createTestSigning(wallet)
    await subject.store.insertSignings({ batch, signings: [signing], now: NOW })
    await sql`delete from pgboss.job`.execute(subject.database.db)
    return { slug: signing.slug, batch, signing }
  }
  const freeze = (slug: string, text = 'a receipt') => pinning.freezeReceipt({ slug, bytes: Buffer.from(text) })
  const findRow = (slug: string) => findProofRow(subject.database.db, slug)
  const findJobs = async () => {
    const { rows } = await sql<{ name: string; data: unknown; delay: number }>`
      select name, data, extract(epoch from start_after - created_on)::float8 as delay from pgboss.job`.execute(
      subject.database.db,
    )
    return rows
  }
  const failing: Jobs = {
    insertPins: (relation) => subject.jobs.insertPins(relation),
    insert: async () => {
      throw new Error('no job')
    },
    work: async () => {},
    stop: async () => {},
  }

  describe('findPin', () => {
    test.each([[undefined], ['[{"imr":3,"digest":"\\u00e4 \\"quoted\\" {}"}]']])(
      'has all content of a receipt, with the event log %s',
      async (eventLog) => {
        const { slug, batch, signing } = await insert({ eventLog })
        const { statement, witness, release, txMetadata } = signing
        const [path = []] = createInclusionPaths(batch.leaves.map(fromHex))
        const found = await pinning.findPin(slug)
        expect(found).toEqual({
          slug,
          status: 'pending_pin',
          records: {
            version: 1,
            txMetadata: { ...txMetadata, to: txMetadata.to.toLowerCase() },
            statement,
            inclusion: { leafIndex: 0, treeSize: 300, path: path.map(toHex) },
            batch: {
              bootId: batch.bootId,
              sequence: 3,
              previous: batch.previous,
              mode: 'mock',
              quoteHex: Buffer.from(batch.quote).toString('hex'),
              quoteVerified: true,
              measurement: batch.measurement,
              tcbStatus: 'UpToDate',
              config: batch.config,
              ...(eventLog === undefined ? {} : { eventLog }),
            },
            coordinator: {
              mode: 'mock',
              publicKey: statement.coordinatorKey,
              selfAttestation: batch.selfAttestation,
              release,
            },
            witness,
            collateral: new Uint8Array(batch.collateral),
          },
          receiptBytes: null,
          attempts: 0,
          createdAt: NOW,
        })
        expect(found?.records.version === 1 && 'eventLog' in found.records.batch).toBe(eventLog !== undefined)
      },
    )

    test('a single leaf is a complete tree', async () => {
      const signing = createTestSigning(wallet)
      const batch = createTestBatch({ leaves: [randomHex(32)] })
      await subject.store.insertSignings({ batch, signings: [signing], now: NOW })
      expect((await pinning.findPin(signing.slug))?.records.inclusion).toEqual({ leafIndex: 0, treeSize: 1, path: [] })
    })

    test('each proof has the batch, collateral and attestation of its signing', async () => {
      const inserted = []
      for (const name of ['one', 'two']) {
        const collateral = Buffer.from(JSON.stringify({ name }))
        const { selfAttestation } = createTestBatch()
        inserted.push(
          await insert({ collateral, selfAttestation: { ...selfAttestation, measurement: '0f'.repeat(48) } }),
        )
      }
      for (const { slug, batch } of inserted) {
        const found = await pinning.findPin(slug)
        expect(found?.records).toMatchObject({
          collateral: new Uint8Array(batch.collateral),
          batch: { bootId: batch.bootId },
          coordinator: { selfAttestation: batch.selfAttestation },
        })
      }
    })

    test('the same rows give the same receipt each time', async () => {
      const { slug } = await insert()
      const receipts = [await pinning.findPin(slug), await pinning.findPin(slug)].map(
        (work) => work && assembleReceipt(work).receipt.cid,
      )
      expect(receipts[0]).toBeDefined()
      expect(receipts[0]).toBe(receipts[1])
    })

    test.each(['', 'unknown', "' or true --"])('finds no proof for %j', async (slug) => {
      await insert()
      expect(await pinning.findPin(slug)).toBeUndefined()
    })
  })

  describe('freezeReceipt', () => {
    test('I6: the first bytes stay, and later callers get them', async () => {
      const { slug } = await insert()
      expect(await freeze(slug, 'first')).toEqual(new Uint8Array(Buffer.from('first')))
      expect(await freeze(slug, 'second')).toEqual(new Uint8Array(Buffer.from('first')))
      expect((await pinning.findPin(slug))?.receiptBytes).toEqual(new Uint8Array(Buffer.from('first')))
      expect((await findRow(slug)).status).toBe('pending_pin')
    })

    test('I6: of 20 concurrent calls one stores its bytes, and all get them', async () => {
      const { slug } = await insert()
      const all = await Promise.all(Array.from({ length: 20 }, (_, index) => freeze(slug, `receipt ${index}`)))
      expect(new Set(all.map((bytes) => Buffer.from(bytes).toString())).size).toBe(1)
      expect((await pinning.findPin(slug))?.receiptBytes).toEqual(all[0])
    })

    test('returns bytes up to the largest receipt unchanged', async () => {
      const { slug } = await insert()
      const bytes = randomBytes(262_144)
      expect(Buffer.from(await pinning.freezeReceipt({ slug, bytes })).equals(bytes)).toBe(true)
    })

    test('freezes nothing for an unknown proof', async () => {
      await expect(freeze('unknown')).rejects.toThrow('there is no proof')
    })
  })

  describe('completePin', () => {
    test('with a delay, the first proof sets the time for all that are pinned by then', async () => {
      const patient = createPinningStore({ db: subject.database.db, jobs: subject.jobs, publishDelayMs: 12_000 })
      const [first, second] = [await insert(), await insert()]
      for (const each of [first, second]) {
        await freeze(each.slug)
        await patient.completePin({ slug: each.slug, cid: CID, now: NOW })
      }
      expect(await findJobs()).toEqual([{ name: PUBLISH_QUEUE, data: {}, delay: expect.closeTo(12, 1) }])
    })

    test('changes the status and writes a job to publish', async () => {
      const { slug } = await insert()
      await freeze(slug)
      await pinning.recordPinFailure({ slug, failure: 'pin_unavailable', now: NOW, retryAt: NOW + 1_000 })
      await sql`delete from pgboss.job`.execute(subject.database.db)
      expect(await pinning.completePin({ slug, cid: CID, now: NOW + 5_000 })).toBe(true)
      expect(await findRow(slug)).toMatchObject({
        status: 'pending_onchain',
        ipfs_cid: CID,
        pin_attempts: 1,
        failure: null,
        pinned_at: new Date(NOW + 5_000),
      })
      expect(await findJobs()).toEqual([{ name: PUBLISH_QUEUE, data: {}, delay: 0 }])
    })

    test('one job waits for all proofs that were pinned meanwhile', async () => {
      for (const { slug } of [await insert(), await insert()]) {
        await freeze(slug)
        expect(await pinning.completePin({ slug, cid: CID, now: NOW })).toBe(true)
      }
      expect(await findJobs()).toHaveLength(1)
    })

    test('one of 20 concurrent calls is first', async () => {
      const { slug } = await insert()
      await freeze(slug)
      const all = Array.from({ length: 20 }, () => pinning.completePin({ slug, cid: CID, now: NOW }))
      expect((await Promise.all(all)).filter((isFirst) => isFirst)).toHaveLength(1)
    })

    test('a second call changes nothing', async () => {
      const { slug } = await insert()
      await freeze(slug)
      await pinning.completePin({ slug, cid: CID, now: NOW })
      await sql`delete from pgboss.job`.execute(subject.database.db)
      const before = await findRow(slug)
      expect(await pinning.completePin({ slug, cid: toCid(Buffer.from('other')), now: NOW + 1 })).toBe(false)
      expect(await findRow(slug)).toEqual(before)
      expect(await findJobs()).toEqual([])
    })

    test('pin_failed is permanent', async () => {
      const { slug } = await insert()
      await freeze(slug)
      await pinning.recordPinFailure({ slug, failure: 'pin_refused', now: NOW })
      expect(await pinning.completePin({ slug, cid: CID, now: NOW })).toBe(false)
      expect(await findRow(slug)).toMatchObject({ status: 'pin_failed', ipfs_cid: null })
    })

    test('sets no CID without frozen bytes', async () => {
      const { slug } = await insert()
      await expect(pinning.completePin({ slug, cid: CID, now: NOW })).rejects.toMatchObject({ code: '23514' })
      expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', ipfs_cid: null })
      expect(await findJobs()).toEqual([])
    })

    test('does not change the status if the job fails', async () => {
      const { slug } = await insert()
      await freeze(slug)
      const jobless = createPinningStore({ db: subject.database.db, jobs: failing })
      await expect(jobless.completePin({ slug, cid: CID, now: NOW })).rejects.toThrow('no job')
      expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', ipfs_cid: null, pinned_at: null })
    })

    test('completes nothing for an unknown proof', async () => {
      expect(await pinning.completePin({ slug: 'unknown', cid: CID, now: NOW })).toBe(false)
      expect(await findJobs()).toEqual([])
    })
  })

  describe('many at once', () => {
    const insertMany = async (count: number) => {
      const batch = createTestBatch()
      const signings = Array.from({ length: count }, () => createTestSigning(wallet))
      await subject.store.insertSignings({ batch, signings, now: NOW })
      await sql`delete from pgboss.job`.execute(subject.database.db)
      return signings.map(({ slug }) => slug)
    }

    test('each has its own records, bytes and CID, and one job publishes them', async () => {
      const slugs = [...(await insertMany(20)), ...(await insertMany(20))]
      const works = await Promise.all([...slugs, 'unknown'].map((slug) => pinning.findPin(slug)))
      expect(works.map((work) => work?.slug)).toEqual([...slugs, undefined])
      const kept = await Promise.all(slugs.map((slug) => freeze(slug, `the receipt of ${slug}`)))
      expect(kept.map((bytes) => Buffer.from(bytes).toString())).toEqual(slugs.map((slug) => `the receipt of ${slug}`))
      const toPinned = (slug: string, index: number) => ({ slug, cid: toCid(Buffer.from(slug)), now: NOW + index })
      expect(await Promise.all(slugs.map((slug, index) => pinning.completePin(toPinned(slug, index))))).toEqual(
        slugs.map(() => true),
      )
      for (const [index, slug] of slugs.entries()) {
        const { cid, now } = toPinned(slug, index)
        expect(await findRow(slug)).toMatchObject({
          status: 'pending_onchain',
          ipfs_cid: cid,
          pinned_at: new Date(now),
        })
      }
      expect(await findJobs()).toEqual([{ name: PUBLISH_QUEUE, data: {}, delay: 0 }])
    })

    test('a statement has at most 4 MB of receipts and reads 32 proofs', async () => {
      const slugs = await insertMany(40)
      const sizes: number[] = []
      const watched = subject.database.db.withPlugin({
        transformQuery({ node, queryId }) {
          const { parameters } = subject.database.db.getExecutor().compileQuery(node, queryId)
          sizes.push(...parameters.filter((one) => Array.isArray(one)).map((one) => one.join('').length))
          return node
        },
        transformResult: async ({ result }) => result,
      })
      const store = createPinningStore({ db: watched, jobs: subject.jobs })
      await Promise.all(slugs.map((slug) => store.findPin(slug)))
      const length = slugs[0]?.length ?? 0
      expect(Math.max(...sizes)).toBeLessThanOrEqual(32 * Math.max(length, 64))
      expect(sizes).toContain(32 * length)
      // Random, so that packing saves nothing.
      const bytes = randomBytes(MAX_RECEIPT_BYTES)
      const frozen = await Promise.all(slugs.map((slug) => store.freezeReceipt({ slug, bytes })))
      expect(frozen.every((one) => bytes.equals(one))).toBe(true)
      expect(Math.floor(Math.max(...sizes) / (2 * MAX_RECEIPT_BYTES))).toBe(7)
    })

    test('one that cannot be completed does not affect the others', async () => {
      const slugs = await insertMany(4)
      const [bare, ...frozen] = slugs
      for (const slug of frozen) await freeze(slug)
      const settled = await Promise.allSettled(slugs.map((slug) => pinning.completePin({ slug, cid: CID, now: NOW })))
      expect(settled).toMatchObject([{ reason: { code: '23514' } }, { value: true }, { value: true }, { value: true }])
      expect(await findRow(bare ?? '')).toMatchObject({ status: 'pending_pin', ipfs_cid: null })
    })

    test('an unknown one does not keep the others from being frozen', async () => {
      const [slug = ''] = await insertMany(1)
      const settled = await Promise.allSettled([freeze('unknown'), freeze(slug)])
      expect(settled).toMatchObject([{ status: 'rejected' }, { status: 'fulfilled' }])
    })

    test('workers with the same proofs in different orders never deadlock', async () => {
      const slugs = await insertMany(100)
      const others = createPinningStore({ db: subject.database.db, jobs: subject.jobs })
      const orders = [slugs, slugs.toReversed()] as const
      const frozen = await Promise.all([
        ...orders[0].map((slug) => freeze(slug, 'one')),
        ...orders[1].map((slug) => others.freezeReceipt({ slug, bytes: Buffer.from('two') })),
      ])
      const texts = frozen.map((bytes) => Buffer.from(bytes).toString())
      expect(texts.slice(0, 100)).toEqual(texts.slice(100).toReversed())
      const moved = await Promise.all(
        [pinning, others].map((store, index) =>
          Promise.all((orders[index] ?? []).map((slug) => store.completePin({ slug, cid: CID, now: NOW }))),
        ),
      )
      expect(moved.flat().filter((isFirst) => isFirst)).toHaveLength(100)
    })
  })

  describe('recordPinFailure', () => {
    test.each([250, 1_500, 300_000])('a job starts the next attempt after %d ms', async (delayMs) => {
      const { slug } = await insert()
      await pinning.recordPinFailure({ slug, failure: 'pin_unavailable', now: NOW, retryAt: NOW + delayMs })
      expect(await findRow(slug)).toMatchObject({
        status: 'pending_pin',
        pin_attempts: 1,
        failure: 'pin_unavailable',
        ipfs_cid: null,
      })
      expect(await findJobs()).toEqual([{ name: PIN_QUEUE, data: { slugs: [slug] }, delay: delayMs / 1_000 }])
    })

    test('counts attempts and keeps the latest failure', async () => {
      const { slug } = await insert()
      const failures = ['pin_unavailable', 'pin_mismatch', 'internal']
      for (const failure of failures) await pinning.recordPinFailure({ slug, failure, now: NOW, retryAt: NOW + 250 })
      expect(await pinning.findPin(slug)).toMatchObject({ attempts: 3, status: 'pending_pin' })
      expect(await findRow(slug)).toMatchObject({ failure: 'internal' })
    })

    test('counts 20 concurrent calls', async () => {
      const { slug } = await insert()
      const failure = { slug, failure: 'pin_unavailable', now: NOW, retryAt: NOW + 250 }
      await Promise.all(Array.from({ length: 20 }, () => pinning.recordPinFailure(failure)))
      expect(await pinning.findPin(slug)).toMatchObject({ attempts: 20 })
    })

    test('the last failure sets pin_failed without a job, and keeps the receipt', async () => {
      const { slug } = await insert()
      await freeze(slug)
      await pinning.recordPinFailure({ slug, failure: 'pin_refused', now: NOW })
      expect(await findRow(slug)).toMatchObject({
        status: 'pin_failed',
        pin_attempts: 1,
        failure: 'pin_refused',
        ipfs_cid: null,
      })
      expect((await pinning.findPin(slug))?.receiptBytes).toEqual(new Uint8Array(Buffer.from('a receipt')))
      expect(await findJobs()).toEqual([])
    })

    test.each(['pending_onchain', 'pin_failed'])('records no failure for a proof that is %s', async (status) => {
      const { slug } = await insert()
      await freeze(slug)
      if (status === 'pin_failed') await pinning.recordPinFailure({ slug, failure: 'pin_refused', now: NOW })
      else await pinning.completePin({ slug, cid: CID, now: NOW })
      await sql`delete from pgboss.job`.execute(subject.database.db)
      const before = await findRow(slug)
      for (const retryAt of [NOW + 250, undefined]) {
        await pinning.recordPinFailure({ slug, failure: 'pin_unavailable', now: NOW, retryAt })
      }
      expect(await findRow(slug)).toEqual(before)
      expect(await findJobs()).toEqual([])
    })

    test('does not count the attempt if the job fails', async () => {
      const { slug } = await insert()
      const jobless = createPinningStore({ db: subject.database.db, jobs: failing })
      const failure = { slug, failure: 'pin_unavailable', now: NOW, retryAt: NOW + 250 }
      await expect(jobless.recordPinFailure(failure)).rejects.toThrow('no job')
      expect(await findRow(slug)).toMatchObject({ pin_attempts: 0, failure: null })
    })
  })

  test('every statement finds its rows by a key', async () => {
    const { slug } = await insert()
    const nodes: RootOperationNode[] = []
    const watched = subject.database.db.withPlugin({
      transformQuery({ node }) {
        nodes.push(node)
        return node
      },
      transformResult: async ({ result }) => result,
    })
    const pinning = createPinningStore({ db: watched, jobs: subject.jobs })
    await pinning.findPin(slug)
    await pinning.freezeReceipt({ slug, bytes: Buffer.from('a receipt') })
    await pinning.freezeReceipt({ slug, bytes: Buffer.from('a receipt') })
    await pinning.recordPinFailure({ slug, failure: 'internal', now: NOW, retryAt: NOW + 250 })
    await pinning.completePin({ slug, cid: CID, now: NOW })
    await pinning.recordPinFailure({ slug, failure: 'internal', now: NOW })
    expect(nodes).toHaveLength(8)
    for (const node of nodes) {
      const { sql: text, parameters } = watched.getExecutor().compileQuery(node, createQueryId())
      const explain = CompiledQuery.raw(`explain (format json) ${text}`, [...parameters])
      const { rows } = await subject.database.db.executeQuery<{ 'QUERY PLAN': [{ Plan: Plan }] }>(explain)
      const scans = findScans(rows[0]?.['QUERY PLAN'][0].Plan)
      // One is about rows that the signing stored once.
      if (text.includes('insert into receipts')) continue
      const key = text.includes('"verifications"') ? 'verifications_pkey' : 'signing_lookups_slug_key'
      expect(scans.map(({ 'Index Name': name }) => name)).toContain(key)
      for (const scan of scans) expect(scan).toHaveProperty('Index Cond')
    }
  })

  test('the receipt from findPin is valid', async () => {
    const { slug } = await insert()
    const work = await pinning.findPin(slug)
    if (work === undefined) throw new Error('no such proof')
    const { receipt } = assembleReceipt(work)
    const frozen = await pinning.freezeReceipt({ slug, bytes: receipt.bytes })
    await pinning.completePin({ slug, cid: receipt.cid, now: NOW })
    const proof = await subject.store.findProof(slug)
    expect(proof).toMatchObject({ status: 'pending_onchain', ipfsCid: toCid(frozen) })
    expect(proof?.receipt && Buffer.from(proof.receipt).equals(frozen)).toBe(true)
  })
})

describe('pinning without its database', () => {
  test('each call returns database_unavailable', async () => {
    const subject = await startTestStore()
    const pinning = createPinningStore({ db: subject.database.db, jobs: subject.jobs })
    await subject.stop()
    const slug = 'slug'
    const unavailable = expect.objectContaining({ code: 'database_unavailable' })
    await expect(pinning.findPin(slug)).rejects.toEqual(unavailable)
    await expect(pinning.freezeReceipt({ slug, bytes: Buffer.from('a') })).rejects.toEqual(unavailable)
    await expect(pinning.completePin({ slug, cid: CID, now: NOW })).rejects.toEqual(unavailable)
    await expect(pinning.recordPinFailure({ slug, failure: 'internal', now: NOW })).rejects.toEqual(unavailable)
  })
})
