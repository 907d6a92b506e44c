import { toCid } from '@countersign/receipt'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../../test/store/store.ts'
import { createPinningStore, type PinningStore } from '../../store/pinning.ts'
import type { Wallet } from '../../store/wallets.ts'
import { checkProofs, formatList, type ListedProof, parseList } from './checkProofs.ts'

const BYTES = Buffer.from('a receipt')
const CID = toCid(BYTES)

describe('checkProofs', () => {
  let subject: TestStore
  let pinning: PinningStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    pinning = createPinningStore({ db: subject.database.db, jobs: subject.jobs })
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())
  // Triggers forbid deletes but not truncate.
  beforeEach(() =>
    sql`truncate signings, signing_lookups, proofs, receipts, publications cascade`.execute(subject.database.db),
  )

  const check = (earlier?: ListedProof[]) => checkProofs(subject.database.db, earlier && { earlier })
  async function sign(): Promise<string> {
    const signing = createTestSigning(wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    return signing.slug
  }
  async function pin(): Promise<string> {
    const slug = await sign()
    await pinning.freezeReceipt({ slug, bytes: BYTES })
    await pinning.completePin({ slug, cid: CID, now: NOW })
    return slug
  }
  /** Changes rows with triggers disabled. */
  async function damage(statement: string) {
    const tables = ['proofs', 'receipts', 'signings']
    for (const table of tables) await subject.query(`alter table ${table} disable trigger user`)
    await subject.query(statement)
    for (const table of tables) await subject.query(`alter table ${table} enable trigger user`)
  }
  async function publish(slug: string, status: 'confirmed' | 'final') {
    await sql`insert into publications (chain_id, account, nonce, contract, calldata, status, tx_hash, block_number, created_at)
      values (1, ${Buffer.alloc(20)}, 1, ${Buffer.alloc(20)}, '', ${status}, ${Buffer.alloc(32)}, 1, now())`.execute(
      subject.database.db,
    )
    await damage(
      `update proofs set status = 'complete', publication_id = (select max(id) from publications) where slug = '${slug}'`,
    )
  }

  test('finds no faults in an empty database', async () => {
    expect(await check()).toMatchObject({ matching: 0, makeable: 0, dropped: 0, faults: [] })
  })

  test('matches pinned receipts, builds the others and lists both', async () => {
    const [made, pinned] = [await sign(), await pin()]
    const listed: ListedProof[] = []
    const result = await checkProofs(subject.database.db, { onList: (proofs) => void listed.push(...proofs) })
    expect(result).toMatchObject({ matching: 1, makeable: 1, dropped: 0, faults: [] })
    expect(result.counts).toMatchObject({ pending_pin: 1, pending_onchain: 1, complete: 0 })
    expect(listed).toEqual([
      { slug: made, cid: undefined },
      { slug: pinned, cid: CID },
    ])
    expect(parseList(formatList(listed))).toEqual(listed)
    expect((await check(listed)).faults).toEqual([])
  })

  test('reads more than one page', async () => {
    const batch = createTestBatch()
    const signings = Array.from({ length: 250 }, () => createTestSigning(wallet))
    await subject.store.insertSignings({ batch, signings, now: NOW })
    expect(await check()).toMatchObject({ makeable: 250, faults: [] })
  })

  test('reports proofs that are missing, no longer pinned, or have another receipt than on the list', async () => {
    const [open, pinned] = [await sign(), await pin()]
    const gone = 'AAAAAAAAAAAAAAAAAAA_-A'
    const { faults } = await check([
      { slug: gone, cid: undefined },
      { slug: open, cid: CID },
      { slug: pinned, cid: toCid(Buffer.from('another')) },
    ])
    expect(faults).toHaveLength(3)
    expect(faults.join()).toMatch(`${gone} is missing`)
    expect(faults.join()).toMatch(`${open}: its receipt was ${CID}, but is now not pinned`)
    expect(faults.join()).toMatch(`but is now ${CID}`)
    // A proof may have been pinned since.
    expect((await check([{ slug: pinned, cid: undefined }])).faults).toEqual([])
  })

  test('reports a receipt with one changed byte', async () => {
    await pin()
    await damage(`update receipts set bytes = set_byte(bytes, 1, 0)`)
    expect(await check()).toMatchObject({ matching: 0, faults: [expect.stringContaining('are not those of')] })
  })

  test('reports a receipt that cannot be built because shared data is missing', async () => {
    await sign()
    await damage(`update signings set release = null, version = 2`)
    expect(await check()).toMatchObject({ makeable: 0, faults: [expect.stringMatching(/can't be built/)] })
  })

  test('reports a signature without a proof', async () => {
    await sign()
    await damage('delete from proofs')
    expect((await check()).faults).toEqual([expect.stringMatching(/^signature \d+ has no proof$/)])
  })

  test('requires a publication for a complete proof, and its bytes unless they were dropped', async () => {
    const slug = await pin()
    await publish(slug, 'confirmed')
    expect((await check()).faults).toEqual([])
    await damage('delete from receipts')
    expect((await check()).faults).toEqual([expect.stringContaining('are missing')])
    await damage('update proofs set receipt_dropped = 1')
    expect(await check()).toMatchObject({ dropped: 1, faults: [] })
    await sql`alter table proofs drop constraint proofs_published`.execute(subject.database.db)
    await damage('update proofs set publication_id = null')
    expect((await check()).faults.join()).toMatch(/its publication isn't/)
  })
})

test.each(['x', 'x\n', `${'A'.repeat(22)} \n`, `${'A'.repeat(21)} -\n`, '\n', `${'A'.repeat(22)} - -\n`])(
  'rejects the list %j',
  (text) => {
    expect(() => parseList(text)).toThrow(/the list/)
  },
)
