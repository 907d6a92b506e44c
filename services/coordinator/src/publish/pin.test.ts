import type { Hex } from '@countersign/protocol'
import { parseReceipt, toCid } from '@countersign/receipt'
import { type FakePinService, type PinServiceFault, startFakeKubo } from '@countersign/testing'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createFakeClock, createFakeLog } from '../../test/ports.ts'
import { findProofRow } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { CoordinatorError } from '../errors.ts'
import type { SigningBatch } from '../store/batches.ts'
import type { PinWork } from '../store/findPins.ts'
import { PIN_QUEUE, PUBLISH_QUEUE } from '../store/jobs.ts'
import { createPinningStore, type PinningStore } from '../store/pinning.ts'
import type { Signing } from '../store/signings.ts'
import type { Wallet } from '../store/wallets.ts'
import { assembleReceipt } from './assembleReceipt.ts'
import { createKuboPinner } from './ipfs/kubo.ts'
import { PinError, type PinErrorCode } from './ipfs/pinError.ts'
import type { Block, Pinner } from './ipfs/pinner.ts'
import { createPinStage, type PinDeps } from './pin.ts'

const HOUR_MS = 3_600_000

const faults: [PinServiceFault, PinErrorCode][] = [
  ['down', 'pin_unavailable'],
  ['slow', 'pin_unavailable'],
  ['reset-after-accept', 'pin_unavailable'],
  ['error', 'pin_unavailable'],
  ['busy', 'pin_unavailable'],
  ['garbage', 'pin_unavailable'],
  ['refused', 'pin_refused'],
  ['wrong-cid', 'pin_mismatch'],
  ['truncated', 'pin_mismatch'],
  ['flipped', 'pin_mismatch'],
  ['endless', 'pin_mismatch'],
  ['forgets', 'pin_not_found'],
]

/** A barrier: callers wait until all have arrived. */
function createMeetingPoint(size: number): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let present = 0
  return () => {
    present += 1
    if (present === size) resolve()
    return promise
  }
}

describe('the pin stage', () => {
  let subject: TestStore
  let pinning: PinningStore
  let wallet: Wallet
  let kubo: FakePinService
  let pinner: Pinner
  beforeAll(async () => {
    subject = await startTestStore()
    pinning = createPinningStore({ db: subject.database.db, jobs: subject.jobs })
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())
  beforeEach(async () => {
    kubo = await startFakeKubo()
    pinner = createKuboPinner({ apiUrl: kubo.url, fetch })
    await deleteJobs()
  })
  afterEach(() => kubo.stop())

  // At most one publish job exists, so a job of an earlier test would hide the next one.
  const deleteJobs = () => sql`delete from pgboss.job`.execute(subject.database.db)
  const findJobs = async () => {
    const { rows } = await sql<{ name: string; data: unknown; delay_ms: number }>`
      select name, data, (extract(epoch from start_after - created_on) * 1000)::int as delay_ms
      from pgboss.job`.execute(subject.database.db)
    return rows
  }
  const insert = async (
    changes: { batch?: Partial<SigningBatch>; signing?: Partial<Signing & { version: 1 }> } = {},
  ) => {
    const signing = { ...createTestSigning(wallet), ...changes.signing }
    await subject.store.insertSignings({ batch: createTestBatch(changes.batch), signings: [signing], now: NOW })
    await deleteJobs()
    return signing.slug
  }
  const findWork = async (slug: string): Promise<PinWork> => {
    const work = await pinning.findPin(slug)
    if (work === undefined) throw new Error('no such proof')
    return work
  }
  const findRow = (slug: string) => findProofRow(subject.database.db, slug)
  const setAttempts = (slug: string, attempts: number) =>
    subject.database.db.updateTable('proofs').set({ pin_attempts: attempts }).where('slug', '=', slug).execute()
  const setUp = (changes: Partial<PinDeps> = {}) => {
    const clock = createFakeClock(NOW + 2_000)
    const log = createFakeLog()
    const deps = { store: pinning, pinner, clock, random: () => 0.5, log, pinDeadlineMs: HOUR_MS, ...changes }
    return { stage: createPinStage(deps), clock, log }
  }
  /** Expects row, service and job to agree that the proof is pinned. */
  const expectPinned = async (slug: string) => {
    const { status, ipfs_cid: cid, receipt: bytes, failure } = await findRow(slug)
    expect([status, failure]).toEqual(['pending_onchain', null])
    if (cid === null || bytes === null) throw new Error('nothing is pinned')
    expect(toCid(bytes)).toBe(cid)
    expect(Buffer.from(kubo.blocks.get(cid) ?? []).equals(bytes)).toBe(true)
    const work = await findWork(slug)
    const { collateral } = assembleReceipt(work)
    const named = parseReceipt(work.receiptBytes ?? new Uint8Array()).signer.collateral
    expect(Buffer.from(kubo.blocks.get(named) ?? []).equals(collateral.bytes)).toBe(true)
    expect((await findJobs()).filter(({ name }) => name === PUBLISH_QUEUE)).toEqual([
      { name: PUBLISH_QUEUE, data: {}, delay_ms: 0 },
    ])
    return { cid, bytes: Buffer.from(bytes) }
  }
  /** A pinner that records its calls. */
  const createWatchedPinner = (inner: Pick<Pinner, 'pin' | 'read'> = pinner) => {
    const calls: string[] = []
    const watched: Pick<Pinner, 'pin' | 'read'> = {
      pin(block, options) {
        calls.push(`pin ${block.cid}`)
        return inner.pin(block, options)
      },
      read(cid, options) {
        calls.push(`read ${cid}`)
        return inner.read(cid, options)
      },
    }
    return { ...watched, calls }
  }
  const unavailablePinner: Pick<Pinner, 'pin' | 'read'> = {
    pin: async () => {
      throw new PinError('pin_unavailable', { details: 'block/put: ECONNREFUSED' })
    },
    read: async () => {
      throw new PinError('pin_unavailable')
    },
  }

  describe('a proof that is pending_pin', () => {
    test('specification §3: moves to pending_onchain with its CID, and a job to publish it', async () => {
      const slug = await insert()
      const expected = assembleReceipt(await findWork(slug))
      const { stage, log, clock } = setUp()
      expect(await stage.pin(slug)).toBe('pinned')
      const { cid, bytes } = await expectPinned(slug)
      expect(cid).toBe(expected.receipt.cid)
      expect(bytes.equals(expected.receipt.bytes)).toBe(true)
      expect([...kubo.blocks.keys()].toSorted()).toEqual([expected.receipt.cid, expected.collateral.cid].toSorted())
      expect(await findRow(slug)).toMatchObject({ pin_attempts: 0, pinned_at: new Date(clock.now()) })
      const proof = await subject.store.findProof(slug)
      expect(proof).toMatchObject({ status: 'pending_onchain', ipfsCid: cid, onchainTxHash: null })
      expect(bytes.equals(proof?.receipt ?? Buffer.of())).toBe(true)
      expect(JSON.parse(bytes.toString()).issuedAt).toBe(new Date(NOW).toISOString())
      expect(log.lines).toEqual([{ level: 'info', msg: 'Pinned receipt', slug, cid, durationMs: 0 }])
    })

    test('the collateral is pinned and read back before the receipt', async () => {
      const slug = await insert()
      const { receipt, collateral } = assembleReceipt(await findWork(slug))
      const watched = createWatchedPinner()
      await setUp({ pinner: watched }).stage.pin(slug)
      expect(watched.calls).toEqual([
        `pin ${collateral.cid}`,
        `read ${collateral.cid}`,
        `pin ${receipt.cid}`,
        `read ${receipt.cid}`,
      ])
    })
  })

  describe('anything else is skipped', () => {
    test('an unknown slug', async () => {
      const { stage, log } = setUp()
      expect(await stage.pin('unknown')).toBe('skipped')
      expect(log.lines).toEqual([])
      expect(kubo.requests).toBe(0)
    })

    test('I6: a pinned proof keeps its bytes and CID', async () => {
      const slug = await insert()
      const { stage } = setUp()
      await stage.pin(slug)
      const before = await findRow(slug)
      const { requests } = kubo
      expect(await stage.pin(slug)).toBe('skipped')
      expect(await findRow(slug)).toEqual(before)
      expect(kubo.requests).toBe(requests)
    })

    test('a pin_failed proof', async () => {
      const slug = await insert()
      await pinning.recordPinFailure({ slug, failure: 'pin_refused', now: NOW })
      expect(await setUp().stage.pin(slug)).toBe('skipped')
      expect(await findRow(slug)).toMatchObject({ status: 'pin_failed', pin_attempts: 1, ipfs_cid: null })
      expect(kubo.requests).toBe(0)
    })
  })

  test.each(faults)('%s: retries as %s, and pins when the service recovers', async (fault, code) => {
    const slug = await insert({ batch: { collateral: Buffer.from(JSON.stringify({ fault })) } })
    kubo.setFault(fault, { delayMs: 60_000 })
    // Short only where the timeout must occur. Elsewhere a busy machine could fail the test.
    const { stage, log, clock } = setUp(fault === 'slow' ? { timeoutMs: 100 } : {})
    for (const [attempt, delayMs] of [500, 1_000].entries()) {
      await deleteJobs()
      expect(await stage.pin(slug)).toBe('retried')
      const unpinned = { status: 'pending_pin', ipfs_cid: null, pinned_at: null }
      expect(await findRow(slug)).toMatchObject({ ...unpinned, pin_attempts: attempt + 1, failure: code })
      expect(await findJobs()).toEqual([{ name: PIN_QUEUE, data: { slugs: [slug] }, delay_ms: delayMs }])
      expect(log.lines.at(-1)).toMatchObject({ level: 'warn', slug, code, attempt: attempt + 1, delayMs })
      clock.advance(delayMs)
    }
    const frozen = (await findRow(slug)).receipt
    expect(await subject.store.findProof(slug)).toMatchObject({ status: 'pending_pin', ipfsCid: null, receipt: null })

    kubo.setFault()
    expect(await setUp().stage.pin(slug)).toBe('pinned')
    const { bytes } = await expectPinned(slug)
    expect(frozen && bytes.equals(frozen)).toBe(true)
    expect(await findRow(slug)).toMatchObject({ pin_attempts: 2 })
  })

  describe('a pin service that cannot be trusted', () => {
    test.each(['collateral', 'receipt'] as const)('returns other bytes for the %s', async (which) => {
      const slug = await insert()
      const target = assembleReceipt(await findWork(slug))[which].cid
      const lying: Pick<Pinner, 'pin' | 'read'> = {
        ...pinner,
        read: async (cid, options) => (cid === target ? new Uint8Array(3) : pinner.read(cid, options)),
      }
      expect(await setUp({ pinner: lying }).stage.pin(slug)).toBe('retried')
      expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', failure: 'pin_mismatch', ipfs_cid: null })
    })

    test('stores the collateral and loses the receipt', async () => {
      const slug = await insert()
      const { receipt } = assembleReceipt(await findWork(slug))
      const losing: Pick<Pinner, 'pin' | 'read'> = {
        ...pinner,
        pin: async (block, options) => (block.cid === receipt.cid ? undefined : pinner.pin(block, options)),
      }
      expect(await setUp({ pinner: losing }).stage.pin(slug)).toBe('retried')
      expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', failure: 'pin_not_found' })
    })
  })

  describe('a pin that hangs', () => {
    test('times out even if the pinner ignores the signal', async () => {
      const slug = await insert()
      const signals: AbortSignal[] = []
      const deaf: Pick<Pinner, 'pin' | 'read'> = {
        ...pinner,
        pin(_block, { signal }) {
          signals.push(signal)
          return new Promise(() => {})
        },
      }
      expect(await setUp({ pinner: deaf, timeoutMs: 50 }).stage.pin(slug)).toBe('retried')
      expect(signals.map(({ aborted }) => aborted)).toEqual([true])
      expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', failure: 'pin_unavailable' })
    })

    test('does not delay other pins', async () => {
      const [hanging, other] = [await insert(), await insert()]
      const { receipt } = assembleReceipt(await findWork(hanging))
      const [reached, hang] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const { stage } = setUp({
        pinner: {
          ...pinner,
          async pin(block, options) {
            if (block.cid !== receipt.cid) return pinner.pin(block, options)
            reached.resolve()
            await hang.promise
            throw new PinError('pin_unavailable')
          },
        },
      })
      const hung = stage.pin(hanging)
      await reached.promise
      expect(await stage.pin(other)).toBe('pinned')
      expect(await findRow(hanging)).toMatchObject({ status: 'pending_pin', pin_attempts: 0 })
      hang.resolve()
      expect(await hung).toBe('retried')
    })
  })

  describe('the collateral', () => {
    test('is not pinned again after it was pinned and read back', async () => {
      const slugs = [await insert(), await insert(), await insert()]
      const { collateral } = assembleReceipt(await findWork(slugs[0] ?? ''))
      const watched = createWatchedPinner()
      const { stage } = setUp({ pinner: watched })
      for (const slug of slugs) {
        await deleteJobs()
        expect(await stage.pin(slug)).toBe('pinned')
        await expectPinned(slug)
      }
      expect(watched.calls.filter((call) => call.endsWith(collateral.cid))).toHaveLength(2)
      expect(watched.calls).toHaveLength(8)
    })

    test('is pinned again if it was not read back', async () => {
      const slug = await insert()
      const { collateral } = assembleReceipt(await findWork(slug))
      const watched = createWatchedPinner()
      const { stage } = setUp({ pinner: watched })
      kubo.setFault('flipped')
      expect(await stage.pin(slug)).toBe('retried')
      kubo.setFault()
      expect(await stage.pin(slug)).toBe('pinned')
      expect(watched.calls.filter((call) => call === `pin ${collateral.cid}`)).toHaveLength(2)
    })

    test('is pinned once for concurrent receipts', async () => {
      const slugs = await Promise.all(Array.from({ length: 20 }, () => insert()))
      const { collateral } = assembleReceipt(await findWork(slugs[0] ?? ''))
      const watched = createWatchedPinner()
      const { stage } = setUp({ pinner: watched })
      expect(new Set(await Promise.all(slugs.map((slug) => stage.pin(slug))))).toEqual(new Set(['pinned']))
      expect(watched.calls.filter((call) => call.endsWith(collateral.cid))).toHaveLength(2)
      expect(watched.calls.slice(0, 2)).toEqual([`pin ${collateral.cid}`, `read ${collateral.cid}`])
      for (const slug of slugs) await expectPinned(slug)
    })

    test('fails all receipts that wait for it, but no later ones', async () => {
      const slugs = await Promise.all(Array.from({ length: 5 }, () => insert()))
      const { collateral } = assembleReceipt(await findWork(slugs[0] ?? ''))
      let failures = 1
      const failing: Pick<Pinner, 'pin' | 'read'> = {
        ...pinner,
        async pin(block, options) {
          if (block.cid !== collateral.cid || failures === 0) return pinner.pin(block, options)
          failures -= 1
          throw new PinError('pin_unavailable')
        },
      }
      const { stage } = setUp({ pinner: failing })
      expect(await Promise.all(slugs.map((slug) => stage.pin(slug)))).toEqual(slugs.map(() => 'retried'))
      expect(await Promise.all(slugs.map((slug) => stage.pin(slug)))).toEqual(slugs.map(() => 'pinned'))
    })

    test('is pinned again after the service fails, which may have lost it', async () => {
      const [first, second] = [await insert(), await insert()]
      const { stage } = setUp()
      expect(await stage.pin(first)).toBe('pinned')
      await kubo.stop()
      expect(await stage.pin(second)).toBe('retried')
      // An empty service at the same address.
      const port = Number(new URL(kubo.url).port)
      kubo = await startFakeKubo({ port })
      await deleteJobs()
      expect(await stage.pin(second)).toBe('pinned')
      await expectPinned(second)
    })

    test('is pinned again after 64 others, however often it was used', async () => {
      const slugs: string[] = []
      for (let index = 0; index <= 64; index += 1) {
        slugs.push(await insert({ batch: { collateral: Buffer.from(`{"index":${index}}`) } }))
        // Two with the first collateral: one in the middle, and the last.
        if (index % 32 === 0) slugs.push(await insert({ batch: { collateral: Buffer.from('{"index":0}') } }))
      }
      const { collateral } = assembleReceipt(await findWork(slugs[0] ?? ''))
      const watched = createWatchedPinner()
      const { stage } = setUp({ pinner: watched })
      const ofFirst = () => watched.calls.filter((call) => call.endsWith(collateral.cid))
      const last = slugs.pop() ?? ''
      for (const slug of slugs) expect(await stage.pin(slug)).toBe('pinned')
      expect(ofFirst()).toEqual([`pin ${collateral.cid}`, `read ${collateral.cid}`])
      expect(await stage.pin(last)).toBe('pinned')
      expect(ofFirst().slice(2)).toEqual([`pin ${collateral.cid}`, `read ${collateral.cid}`])
    })

    test('is pinned again after 5 minutes, in case the service lost it', async () => {
      const { stage, clock } = setUp()
      for (const waitMs of [0, 299_999, 1]) {
        clock.advance(waitMs)
        const slug = await insert()
        const { collateral } = assembleReceipt(await findWork(slug))
        expect(await stage.pin(slug)).toBe('pinned')
        const isKnown = waitMs === 299_999
        expect(kubo.blocks.has(collateral.cid)).toBe(!isKnown)
        await kubo.stop()
        kubo = await startFakeKubo({ port: Number(new URL(kubo.url).port) })
      }
    })
  })

  describe('failing a proof', () => {
    test.each([
      ['11 attempts before, at the deadline', 11, HOUR_MS, 'failed'],
      ['40 attempts before, long after the deadline', 40, 5 * HOUR_MS, 'failed'],
      ['12 attempts before, a millisecond to the deadline', 12, HOUR_MS - 1, 'retried'],
      ['500 attempts before, half an hour to the deadline', 500, HOUR_MS / 2, 'retried'],
      ['10 attempts before, after the deadline', 10, 2 * HOUR_MS, 'retried'],
      ['3 attempts before, after the deadline', 3, 2 * HOUR_MS, 'retried'],
      ['none before, after the deadline', 0, 2 * HOUR_MS, 'retried'],
    ])('%s', async (_name, attempts, ageMs, outcome) => {
      const slug = await insert()
      await setAttempts(slug, attempts)
      const { stage, log } = setUp({ pinner: unavailablePinner, clock: createFakeClock(NOW + ageMs) })
      const expected = assembleReceipt(await findWork(slug)).receipt.bytes
      expect(await stage.pin(slug)).toBe(outcome)
      const row = await findRow(slug)
      expect(row).toMatchObject({
        status: outcome === 'failed' ? 'pin_failed' : 'pending_pin',
        pin_attempts: attempts + 1,
        failure: 'pin_unavailable',
        ipfs_cid: null,
        pinned_at: null,
      })
      // An operator can still export it.
      expect(row.receipt && Buffer.from(row.receipt).equals(expected)).toBe(true)
      expect(await findJobs()).toHaveLength(outcome === 'failed' ? 0 : 1)
      const reason = 'block/put: ECONNREFUSED'
      const line = { slug, code: 'pin_unavailable', attempt: attempts + 1, reason }
      if (outcome === 'failed') {
        expect(log.lines).toEqual([{ level: 'error', msg: 'Gave up pinning a receipt', ...line }])
        expect(await setUp().stage.pin(slug)).toBe('skipped')
        expect(await subject.store.findProof(slug)).toMatchObject({
          status: 'pin_failed',
          ipfsCid: null,
          receipt: null,
        })
      } else {
        const delayMs = Math.min(150_000, 500 * 2 ** attempts)
        expect(log.lines).toEqual([{ level: 'warn', msg: 'Could not pin a receipt', ...line, delayMs }])
      }
    })

    test('retries ever more slowly until the deadline if the service never recovers', async () => {
      const slug = await insert()
      const { stage, clock, log } = setUp({ pinner: unavailablePinner })
      const outcomes: string[] = []
      do {
        await deleteJobs()
        outcomes.push(await stage.pin(slug))
        clock.advance((await findJobs())[0]?.delay_ms ?? 0)
      } while (outcomes.at(-1) === 'retried' && outcomes.length < 100)
      expect(outcomes.at(-1)).toBe('failed')
      expect(clock.now() - NOW).toBeGreaterThanOrEqual(HOUR_MS)
      expect(clock.now() - NOW).toBeLessThan(HOUR_MS + 300_000)
      expect(outcomes.length).toBeGreaterThanOrEqual(12)
      const delays = log.lines.flatMap(({ delayMs }) => (typeof delayMs === 'number' ? [delayMs] : []))
      expect(delays.slice(0, 10)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 150_000])
    })

    test('waits a random time of at least a quarter of a second', async () => {
      const slug = await insert()
      const { stage } = setUp({ pinner: unavailablePinner, random: () => 0 })
      await stage.pin(slug)
      expect(await findJobs()).toEqual([{ name: PIN_QUEUE, data: { slugs: [slug] }, delay_ms: 250 }])
    })

    test('fails a receipt over 256 KiB at once', async () => {
      const { txMetadata } = createTestSigning(wallet)
      const data: Hex = `0x${'ab'.repeat(131_072)}`
      const slug = await insert({ signing: { txMetadata: { ...txMetadata, data } } })
      const { stage, log } = setUp()
      expect(await stage.pin(slug)).toBe('failed')
      expect(await findRow(slug)).toMatchObject({
        status: 'pin_failed',
        pin_attempts: 1,
        failure: 'receipt_too_large',
        ipfs_cid: null,
        receipt: null,
      })
      expect(log.lines).toMatchObject([{ level: 'error', code: 'receipt_too_large', attempt: 1 }])
      expect(await findJobs()).toEqual([])
      expect(kubo.requests).toBe(0)
    })

    test('retries records that do not form a receipt, because the code may change', async () => {
      const slug = await insert({ batch: { eventLog: '' } })
      expect(await setUp().stage.pin(slug)).toBe('retried')
      expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', failure: 'receipt_malformed' })
      expect(kubo.requests).toBe(0)
    })
  })

  describe('internal failures', () => {
    test.each(['findPin', 'freezeReceipt', 'completePin', 'recordPinFailure'] as const)(
      'database_unavailable in %s is left to the job queue',
      async (name) => {
        const slug = await insert()
        const lost = async () => {
          throw new CoordinatorError('database_unavailable', 'the database is unavailable')
        }
        const store = { ...pinning, [name]: lost }
        const { stage, log } = setUp({ store, ...(name === 'recordPinFailure' ? { pinner: unavailablePinner } : {}) })
        await expect(stage.pin(slug)).rejects.toMatchObject({ code: 'database_unavailable' })
        expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', pin_attempts: 0, failure: null })
        expect(log.lines).toEqual([])
        expect(await setUp().stage.pin(slug)).toBe('pinned')
        await expectPinned(slug)
      },
    )

    test('records other errors as internal, and logs only their names', async () => {
      const slug = await insert()
      const broken: Pick<Pinner, 'pin' | 'read'> = {
        ...pinner,
        pin: async () => {
          throw new TypeError('https://user:secret@pins.example')
        },
      }
      const { stage, log } = setUp({ pinner: broken })
      expect(await stage.pin(slug)).toBe('retried')
      expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', failure: 'internal', pin_attempts: 1 })
      expect(log.lines).toMatchObject([{ level: 'warn', code: 'internal', reason: 'TypeError' }])
      expect(JSON.stringify(log.lines)).not.toContain('secret')
    })
  })

  describe('I6: receipt bytes and CID never change', () => {
    /** A worker of a release that assembles other bytes. */
    const createOtherStore = (): PinningStore => ({
      ...pinning,
      async findPin(slug) {
        const work = await pinning.findPin(slug)
        if (work?.records.version !== 1) throw new Error('of another version')
        return { ...work, records: { ...work.records, batch: { ...work.records.batch, eventLog: '[]' } } }
      },
    })

    test('pins the frozen bytes even if the code now assembles others', async () => {
      const slug = await insert()
      const { receipt } = assembleReceipt(await findWork(slug))
      kubo.setFault('down')
      expect(await setUp().stage.pin(slug)).toBe('retried')
      kubo.setFault()
      await deleteJobs()
      const { stage, log } = setUp({ store: createOtherStore() })
      expect(await stage.pin(slug)).toBe('pinned')
      const { cid, bytes } = await expectPinned(slug)
      expect(cid).toBe(receipt.cid)
      expect(bytes.equals(receipt.bytes)).toBe(true)
      expect(kubo.blocks.size).toBe(2)
      expect(log.lines.map(({ level, msg }) => [level, msg])).toEqual([
        ['warn', 'Kept a frozen receipt that differs from the assembled one'],
        ['info', 'Pinned receipt'],
      ])
    })

    test('only one of two workers completes a proof', async () => {
      const slug = await insert()
      const { receipt } = assembleReceipt(await findWork(slug))
      const meet = createMeetingPoint(2)
      const meeting: Pick<Pinner, 'pin' | 'read'> = {
        ...pinner,
        async pin(block, options) {
          if (block.cid === receipt.cid) await meet()
          return pinner.pin(block, options)
        },
      }
      const workers = [setUp({ pinner: meeting }), setUp({ pinner: meeting })]
      const outcomes = await Promise.all(workers.map(({ stage }) => stage.pin(slug)))
      expect(outcomes.toSorted()).toEqual(['pinned', 'skipped'])
      expect((await expectPinned(slug)).cid).toBe(receipt.cid)
      expect(await findRow(slug)).toMatchObject({ pin_attempts: 0 })
      expect(workers.flatMap(({ log }) => log.lines)).toHaveLength(1)
    })

    test('concurrent workers of different releases pin the same bytes', async () => {
      const slug = await insert()
      const meet = createMeetingPoint(2)
      const pinned = new Set<string>()
      const create = (store: PinningStore) =>
        setUp({
          // Both read the proof before either freezes it.
          store: {
            ...store,
            async freezeReceipt(parameters) {
              await meet()
              return store.freezeReceipt(parameters)
            },
          },
          pinner: {
            ...pinner,
            pin(block: Block, options) {
              pinned.add(block.cid)
              return pinner.pin(block, options)
            },
          },
        }).stage
      const outcomes = await Promise.all([create(pinning), create(createOtherStore())].map((stage) => stage.pin(slug)))
      expect(outcomes.toSorted()).toEqual(['pinned', 'skipped'])
      const { cid } = await expectPinned(slug)
      expect(pinned.has(cid)).toBe(true)
      // Only the collateral and one receipt were ever pinned.
      expect([pinned.size, kubo.blocks.size]).toEqual([2, 2])
    })

    test('a proof is either failed or pinned if one worker fails it while another pins it', async () => {
      const slug = await insert()
      await setAttempts(slug, 20)
      const clock = createFakeClock(NOW + 2 * HOUR_MS)
      const store: PinDeps['store'] = {
        ...pinning,
        async completePin(parameters) {
          expect(await setUp({ pinner: unavailablePinner, clock }).stage.pin(slug)).toBe('failed')
          return pinning.completePin(parameters)
        },
      }
      expect(await setUp({ store, clock }).stage.pin(slug)).toBe('skipped')
      expect(await findRow(slug)).toMatchObject({ status: 'pin_failed', ipfs_cid: null })
      expect(await findJobs()).toEqual([])
    })
  })

  describe('I10: a crash at any step', () => {
    const steps = [
      'findPin',
      'freezeReceipt',
      'pin collateral',
      'read collateral',
      'pin receipt',
      'read receipt',
      'completePin',
    ]
    const crashes = steps.flatMap((name, step) => [['before', name, step] as const, ['after', name, step] as const])

    /** A process that dies at a step: its later calls have no effect. */
    const createCrashing = (when: 'before' | 'after', at: number) => {
      let step = -1
      let isDead = false
      const crash = () => {
        isDead = true
        throw new Error('crashed')
      }
      const wrap =
        <Parameters extends unknown[], Result>(run: (...parameters: Parameters) => Promise<Result>) =>
        async (...parameters: Parameters): Promise<Result> => {
          step += 1
          if (isDead || (step === at && when === 'before')) crash()
          const result = await run(...parameters)
          if (step === at) crash()
          return result
        }
      const store: PinDeps['store'] = {
        findPin: wrap(pinning.findPin),
        freezeReceipt: wrap(pinning.freezeReceipt),
        completePin: wrap(pinning.completePin),
        recordPinFailure: wrap(pinning.recordPinFailure),
      }
      return { store, pinner: { pin: wrap(pinner.pin), read: wrap(pinner.read) } }
    }

    test.each(crashes)('%s %s: the next worker finishes with the same bytes', async (when, name, step) => {
      const slug = await insert()
      const { receipt, collateral } = assembleReceipt(await findWork(slug))
      await expect(setUp(createCrashing(when, step)).stage.pin(slug)).rejects.toThrow('crashed')
      const isDone = when === 'after' && name === 'completePin'
      const crashed = await findRow(slug)
      expect(crashed).toMatchObject({ status: isDone ? 'pending_onchain' : 'pending_pin', pin_attempts: 0 })
      expect(crashed.receipt !== null).toBe(step > 1 || (step === 1 && when === 'after'))

      expect(await setUp().stage.pin(slug)).toBe(isDone ? 'skipped' : 'pinned')
      const { cid, bytes } = await expectPinned(slug)
      expect(cid).toBe(receipt.cid)
      expect(bytes.equals(receipt.bytes)).toBe(true)
      expect([...kubo.blocks.keys()].toSorted()).toEqual([receipt.cid, collateral.cid].toSorted())
    })

    test('while recording a failure: row and job are written together or not at all', async () => {
      for (const when of ['before', 'after'] as const) {
        await deleteJobs()
        const slug = await insert()
        const { store } = createCrashing(when, 2)
        await expect(setUp({ store, pinner: unavailablePinner }).stage.pin(slug)).rejects.toThrow('crashed')
        const count = when === 'before' ? 0 : 1
        expect(await findRow(slug)).toMatchObject({ status: 'pending_pin', pin_attempts: count })
        expect(await findJobs()).toHaveLength(count)
        expect(await setUp().stage.pin(slug)).toBe('pinned')
        await expectPinned(slug)
      }
    })
  })
})
