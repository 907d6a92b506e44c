import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encodeCarHeader, encodeCarSection, toCid } from '@countersign/receipt'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCompleteProofs } from '../../../test/store/finalProofs.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../../test/store/store.ts'
import { assembleReceipt } from '../../publish/assembleReceipt.ts'
import { findPins } from '../../store/findPins.ts'
import { findPosition } from '../../store/proofs.ts'
import { createRetentionStore } from '../../store/retention.ts'
import { checkExport } from './checkExport.ts'
import { createBlockReader, exportRange, exportUser, toPageBlock, toTreeBlocks } from './exportCar.ts'

const HOUR = 3_600_000
const X = Buffer.from('x')
const NOTHING = new Uint8Array()

describe('exports', () => {
  let subject: TestStore
  let folder: string
  beforeAll(async () => {
    subject = await startTestStore()
    folder = await mkdtemp(join(tmpdir(), 'countersign-export-'))
  })
  afterAll(async () => {
    await subject.stop()
    await rm(folder, { recursive: true })
  })

  const deps = () => ({ db: subject.database.db })
  const toPath = (name: string) => join(folder, name)

  /** With receipts built from their rows, like the pipeline's. */
  async function create(count: number, now: number) {
    const proofs = await createCompleteProofs(subject, { count, now, isAssembled: true })
    return { proofs, userId: proofs[0]?.userId ?? '' }
  }

  async function writeUser(name: string, parameters: Parameters<typeof exportUser>[1]) {
    const parts: Uint8Array[] = []
    for await (const part of await exportUser(deps(), parameters)) parts.push(part)
    await writeFile(toPath(name), Buffer.concat(parts))
    return checkExport(toPath(name))
  }

  test('a user’s proofs, including dropped ones, are in one complete file without other users’ proofs', async () => {
    const { proofs, userId } = await create(5, NOW)
    await create(2, NOW)
    const [first] = proofs
    await createRetentionStore(subject.database.db).dropReceipts([first?.slug ?? ''])
    const { faults, proofs: count, blocks } = await writeUser('user.car', { userId })
    expect({ faults, count }).toEqual({ faults: [], count: 5 })
    // Five receipts, their collateral, a page and the root.
    expect(blocks).toBe(8)
    const text = (await readFile(toPath('user.car'))).toString('latin1')
    expect(text).not.toContain('someone@example.org')
    for (const { slug, bytes } of proofs) {
      expect(text).toContain(`"slug":"${slug}"`)
      expect(text).toContain(Buffer.from(bytes).toString('latin1'))
    }
  })

  test('a user without proofs gets an empty index', async () => {
    const { userId } = await createTestWallet(subject.store)
    expect(await writeUser('empty.car', { userId })).toMatchObject({ faults: [], proofs: 0, blocks: 1 })
  })

  test('omits unpinned proofs', async () => {
    const wallet = await createTestWallet(subject.store)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [createTestSigning(wallet)], now: NOW })
    expect(await writeUser('waiting.car', { userId: wallet.userId })).toMatchObject({ faults: [], proofs: 0 })
  })

  test('a full file names the start of the next one', async () => {
    const { proofs, userId } = await create(5, NOW)
    const seen: string[] = []
    let before: string | undefined
    for (const [index, expected] of [2, 2, 1].entries()) {
      const name = `part${index}.car`
      expect(await writeUser(name, { userId, before, maxProofs: 2 })).toMatchObject({ faults: [], proofs: expected })
      const text = (await readFile(toPath(name))).toString('latin1')
      seen.push(...[...text.matchAll(/"slug":"([^"]+)"/g)].map(([, slug = '']) => slug))
      const next = /"next":"([^"]+)"/.exec(text)?.[1]
      before = next === undefined ? undefined : Buffer.from(next, 'base64url').readBigUInt64BE().toString()
    }
    expect(seen).toEqual(proofs.map(({ slug }) => slug).toReversed())
  })

  test('an audit has exactly the proofs signed in its period', async () => {
    const start = NOW + 1_000 * HOUR
    const all = []
    for (let hour = 0; hour < 6; hour++) all.push((await create(2, start + hour * HOUR)).proofs)
    const counts: number[] = []
    const range = { from: start + HOUR, to: start + 4 * HOUR, path: toPath('audit.car') }
    const report = await exportRange(deps(), { ...range, onProgress: (count) => counts.push(count) })
    expect(report.proofs).toBe(6)
    expect(counts.at(-1)).toBe(6)
    expect(await checkExport(range.path)).toMatchObject({ faults: [], proofs: 6, root: report.root })
    const text = (await readFile(range.path)).toString('latin1')
    const isIn = all.map((proofs) => proofs.every(({ slug }) => text.includes(slug)))
    expect(isIn).toEqual([false, true, true, true, false, false])
    expect(text).not.toContain('someone@example.org')
    // The same rows give the same file.
    await exportRange(deps(), { ...range, path: toPath('again.car') })
    expect((await readFile(toPath('again.car'))).equals(await readFile(range.path))).toBe(true)
  })

  test('a position precedes the first proof of its time', async () => {
    const start = NOW + 2_000 * HOUR
    const { proofs } = await create(3, start)
    const { rows } = await sql<{ id: string }>`select signing_id::text as id from proofs
      where slug = ${proofs[0]?.slug ?? ''}`.execute(subject.database.db)
    expect(await findPosition(subject.database.db, start)).toBe(String(Number(rows[0]?.id) - 1))
    const last = await findPosition(subject.database.db, start + 1)
    expect(Number(last)).toBe(Number(rows[0]?.id) + 2)
  })

  test('an audit lists a receipt that cannot be rebuilt as missing and has the others', async () => {
    const now = NOW + 3_000 * HOUR
    const [proof] = await createCompleteProofs(subject, { count: 1, now })
    const { slug = '' } = proof ?? {}
    const { proofs: others } = await create(2, now)
    await createRetentionStore(subject.database.db).dropReceipts([slug])
    const range = { from: now - HOUR, to: now + HOUR }
    const missing = await exportRange(deps(), { ...range, path: toPath('missing.car') })
    expect(missing).toMatchObject({ proofs: 3, missing: 1 })
    expect(await checkExport(toPath('missing.car'))).toMatchObject({ faults: [], proofs: 3, missing: 1 })
    const text = (await readFile(toPath('missing.car'))).toString('latin1')
    for (const other of others) expect(text).toContain(Buffer.from(other.bytes).toString('latin1'))
    expect(text.match(/"missing":true/g)).toHaveLength(1)
  })

  test('a user’s file that lacks a receipt is complete otherwise, and the check detects it', async () => {
    const [proof] = await createCompleteProofs(subject, { count: 1, now: NOW + 4_000 * HOUR })
    const { slug = '', cid = '', userId = '' } = proof ?? {}
    await createRetentionStore(subject.database.db).dropReceipts([slug])
    expect(await writeUser('lacking.car', { userId })).toMatchObject({ faults: [`${slug}: ${cid} is missing`] })
    const counts: number[] = []
    const source = { ...deps(), onMissing: (count: number) => void counts.push(count) }
    for await (const _ of await exportUser(source, { userId }));
    expect(counts).toEqual([1])
  })

  test('does not rebuild stored receipts, and rebuilds at most one per turn of the event loop', async () => {
    const { proofs } = await create(40, NOW + 6_000 * HOUR)
    let made = 0
    let madeInTurn = 0
    let most = 0
    const assemble: typeof assembleReceipt = (...parameters) => {
      made += 1
      madeInTurn += 1
      most = Math.max(most, madeInTurn)
      return assembleReceipt(...parameters)
    }
    let isOver = false
    const onTurn = () => {
      madeInTurn = 0
      if (!isOver) setImmediate(onTurn)
    }
    onTurn()
    const readAll = async () => {
      const missing: string[] = []
      const readBlocks = createBlockReader({ ...deps(), assemble, onMissing: (slug) => void missing.push(slug) })
      let blocks = 0
      for await (const _ of readBlocks(proofs)) blocks += 1
      return { blocks, missing }
    }
    const whole = await readAll()
    expect([made, whole.missing]).toEqual([0, []])
    await createRetentionStore(subject.database.db).dropReceipts(proofs.map(({ slug }) => slug))
    expect(await readAll()).toEqual(whole)
    isOver = true
    expect(made).toBe(40)
    expect(most).toBeLessThanOrEqual(2)
  })

  test('builds at most one page of a user’s index per turn of the event loop', async () => {
    const row = {
      signed_at: new Date(NOW),
      slug: 'a'.repeat(22),
      ipfs_cid: toCid(new Uint8Array()),
      kind: 'transaction',
      tx_hash: Buffer.alloc(32),
      chain_id: '1',
      address: Buffer.alloc(20),
      status: 'complete',
      created_at: new Date(NOW),
      onchain_tx_hash: null,
      onchain_block_number: null,
    }
    const rows = Array.from({ length: 1_000 }, (_, index) => ({ ...row, id: String(9_999 - index) }))
    // Answers immediately, so that the export causes all turns.
    const db = { transaction: () => ({ execute: async () => ({ rows }) }) }
    let turns = 0
    let isOver = false
    const onTurn = () => {
      turns += 1
      if (!isOver) setImmediate(onTurn)
    }
    setImmediate(onTurn)
    await exportUser({ db: db as never }, { userId: '', maxProofs: 4_000 })
    isOver = true
    // Ten pages.
    expect(turns).toBeGreaterThanOrEqual(9)
  })

  test('a page of signatures without proofs does not end the list', async () => {
    const now = NOW + 7_000 * HOUR
    const { proofs, userId } = await create(1, now)
    const columns = sql.raw(
      'wallet_id, verification_id, version, signature, tx_hash, chain_id, data, kind, facts, release',
    )
    await sql`insert into signings (id, created_at, digest, ${columns})
      select nextval('signings_id'), p.created_at, sha256(('lone' || n)::bytea), ${columns}
      from signings as p join proofs as a on a.signing_id = p.id, generate_series(1, 1001) as n
      where a.slug = ${proofs[0]?.slug ?? ''}`.execute(subject.database.db)
    // One before the user's own, older proof, and one younger than this.
    await create(1, now)
    expect(await writeUser('behind.car', { userId })).toMatchObject({ faults: [], proofs: 1 })
    const range = { from: now - HOUR, to: now + HOUR, path: toPath('gap.car') }
    expect((await exportRange(deps(), range)).proofs).toBe(2)
  })

  test('reads an index whose pages name each other only once', async () => {
    const empty = toPageBlock([])
    const levels = [empty]
    for (let level = 0; level < 7; level++) {
      const below = levels.at(-1)?.cid ?? ''
      levels.push(
        ...toTreeBlocks(
          Array.from({ length: 1_000 }, () => below),
          { count: level },
        ),
      )
    }
    const root = levels.at(-1)?.cid ?? ''
    const sections = levels.map(({ cid, bytes }) => encodeCarSection(cid, bytes))
    await writeFile(toPath('hostile.car'), Buffer.concat([encodeCarHeader(root), ...sections]))
    const { faults } = await checkExport(toPath('hostile.car'))
    expect(faults.join()).toMatch(/names a page twice/)
  })

  test.each<[string, (file: Buffer) => Buffer, RegExp]>([
    ['cut in its last block', (file) => file.subarray(0, -1), /cut short|index/],
    ['cut after the index', (file) => file.subarray(0, 8_000), /cut short|not there/],
    ['empty', () => Buffer.alloc(0), /not a CAR/],
    ['with one bit turned', (file) => turn(file, file.length - 100), /does not match its CID/],
    ['with another root', (file) => turn(file, 30), /index is incomplete or malformed/],
    [
      'with a length in another spelling',
      (file) => Buffer.concat([file, Buffer.of(0xa5, 0x80, 0x00), encodeCarSection(toCid(X), X).subarray(1)]),
      /a length is not in canonical form/,
    ],
    [
      'with an empty block',
      (file) => Buffer.concat([file, encodeCarSection(toCid(NOTHING), NOTHING)]),
      /expected a block of 1/,
    ],
    ['that is something else', () => Buffer.from('{"version":1}'.repeat(20)), /not a CAR/],
  ])('a file %s is not whole', async (_, change, fault) => {
    const { userId } = await create(2, NOW)
    await writeUser('good.car', { userId })
    await writeFile(toPath('bad.car'), change(await readFile(toPath('good.car'))))
    const { faults } = await checkExport(toPath('bad.car'))
    expect(faults.join()).toMatch(fault)
  })

  test('detects the missing block of a file that was cut between two blocks', async () => {
    const { userId, proofs } = await create(2, NOW)
    await writeUser('short.car', { userId })
    const file = await readFile(toPath('short.car'))
    const [works] = [await findPins(subject.database.db, [proofs[0]?.slug ?? ''])]
    const last = works[0] && assembleReceipt(works[0]).receipt
    const start = file.lastIndexOf(Buffer.from(last?.bytes ?? []))
    expect(start).toBeGreaterThan(0)
    // After the section's length and CID.
    await truncate(toPath('short.car'), start - 36 - toVarintLength(36 + (last?.bytes.length ?? 0)))
    const { faults } = await checkExport(toPath('short.car'))
    expect(faults).toEqual([`${proofs[0]?.slug}: ${toCid(last?.bytes ?? new Uint8Array())} is missing`])
  })
})

function turn(file: Buffer, offset: number): Buffer {
  const changed = Buffer.from(file)
  changed[offset] = (changed[offset] ?? 0) ^ 1
  return changed
}

const toVarintLength = (value: number) => (value < 128 ? 1 : value < 16_384 ? 2 : 3)
