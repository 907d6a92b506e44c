import { randomUUID } from 'node:crypto'
import type { Hex } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { explain } from '../../test/store/explain.ts'
import { completeRow, pinRows } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestUser,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { createNodeReader } from './logTiles.ts'
import { findProof, findProofStates, listTransactions } from './proofs.ts'
import type { Wallet } from './wallets.ts'

/** Of signings that differ only in their digest. */
const COLUMNS = sql.raw(
  '(id, wallet_id, verification_id, chain_id, created_at, version, kind, tx_hash, digest, signature, data, facts)',
)
const SIGNED =
  sql.raw(`verification_id, 1, now(), 2, 'transaction', sha256(''), sha256(i::text::bytea), decode(repeat('00', 65), 'hex'),
  '', ''`)

describe('proofs', () => {
  let subject: TestStore
  beforeAll(async () => {
    subject = await startTestStore()
  })
  afterAll(() => subject.stop())

  /** Sequentially, so that their order is known. */
  async function sign(wallet: Wallet, count = 1) {
    const signings = Array.from({ length: count }, () => createTestSigning(wallet))
    for (const [index, signing] of signings.entries()) {
      await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW + index })
    }
    return signings
  }
  const list = (userId: string, limit = 100, before?: string) =>
    subject.store.listTransactions({ userId, limit, before })
  const slugs = (rows: readonly { slug: string }[]) => rows.map(({ slug }) => slug)
  const pin = (slug: string) => pinRows(subject.database.db, [slug], { toCid: () => 'cid' })

  test('lists one user’s proofs, newest first', async () => {
    const [wallet, other] = [await createTestWallet(subject.store), await createTestWallet(subject.store)]
    const [first] = await sign(wallet)
    const [foreign] = await sign(other)
    const [second] = await sign(wallet)
    await pin(second?.slug ?? '')
    expect(await list(wallet.userId)).toEqual([
      {
        id: expect.stringMatching(/^[1-9][0-9]*$/),
        to: second?.txMetadata.to.toLowerCase(),
        value: second?.txMetadata.value,
        data: second?.txMetadata.data,
        nonce: second?.txMetadata.nonce,
        txHash: second?.statement.txHash,
        chainId: 84532,
        slug: second?.slug,
        status: 'pending_onchain',
        createdAt: NOW,
      },
      expect.objectContaining({ slug: first?.slug, status: 'pending_pin' }),
    ])
    expect(slugs(await list(other.userId))).toEqual([foreign?.slug])
  })

  test('lists the first 68 bytes of long calldata in lower case', async () => {
    const wallet = await createTestWallet(subject.store)
    const signing = createTestSigning(wallet)
    const data: Hex = `0xABCDEF12${'Ab'.repeat(65_000)}`
    const signings = [{ ...signing, txMetadata: { ...signing.txMetadata, data } }]
    await subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
    expect(await list(wallet.userId)).toMatchObject([{ data: `0xabcdef12${'ab'.repeat(64)}` }])
  })

  test('lists each proof once over pages while new ones arrive', async () => {
    const wallet = await createTestWallet(subject.store)
    const signings = (await sign(wallet, 5)).toReversed()
    const page = await list(wallet.userId, 2)
    expect(slugs(page)).toEqual(slugs(signings.slice(0, 2)))
    await sign(wallet, 2)
    const next = await list(wallet.userId, 2, page.at(-1)?.id)
    expect(slugs(next)).toEqual(slugs(signings.slice(2, 4)))
    const last = await list(wallet.userId, 2, next.at(-1)?.id)
    expect(slugs(last)).toEqual(slugs(signings.slice(4)))
    expect(await list(wallet.userId, 2, last.at(-1)?.id)).toEqual([])
  })

  test('accepts any position, even of another user, and lists only the caller’s own', async () => {
    const [wallet, other] = [await createTestWallet(subject.store), await createTestWallet(subject.store)]
    const [own] = await sign(wallet)
    await sign(other)
    const [position] = await list(other.userId)
    expect(slugs(await list(wallet.userId, 10, position?.id))).toEqual([own?.slug])
    expect(slugs(await list(wallet.userId, 10, '9223372036854775807'))).toEqual([own?.slug])
    expect(await list(wallet.userId, 10, '1')).toEqual([])
  })

  test('returns an empty list for a user without a wallet and for an unknown user', async () => {
    const { id } = await subject.store.upsertUser(createTestUser())
    expect([await list(id), await list(randomUUID())]).toEqual([[], []])
  })

  test('returns the states of many proofs and omits unknown ones', async () => {
    const wallet = await createTestWallet(subject.store)
    const [one, two] = slugs(await sign(wallet, 2)) as [string, string]
    await pin(two)
    await completeRow(subject.database.db, two)
    const states = await subject.store.findProofStates([one, 'AAAAAAAAAAAAAAAAAAAAAA', two, one, '', "'"])
    const open = { status: 'pending_pin', ipfsCid: null, onchainTxHash: null, onchainBlockNumber: null, isFinal: false }
    const done = {
      status: 'complete',
      ipfsCid: 'cid',
      onchainTxHash: `0x${'ab'.repeat(32)}`,
      onchainBlockNumber: 7,
      isFinal: false,
    }
    expect(states.toSorted((left, right) => (left.slug === one ? -1 : right.slug === one ? 1 : 0))).toEqual([
      { slug: one, ...open },
      { slug: two, ...done },
    ])
    expect(await subject.store.findProofStates([])).toEqual([])
    // The same as in the whole proof, so that a watch compares equal values.
    expect(await subject.store.findProof(two)).toMatchObject({ slug: two, ...done })
  })

  test('each query uses its index, even if one wallet has nearly all rows', async () => {
    const [wallet, heavy] = [await createTestWallet(subject.store), await createTestWallet(subject.store)]
    const [signing] = await sign(wallet)
    await sql`
      insert into signings ${COLUMNS}
      select nextval('signings_id'), ${heavy.id}::uuid, ${SIGNED}
      from generate_series(1, 5000) as i, (select max(id) as verification_id from verifications) as v`.execute(
      subject.database.db,
    )
    await sql`analyze`.execute(subject.database.db)
    const { plans, db } = explain(subject.database.db)
    await listTransactions(db, { userId: wallet.userId, limit: 20, before: undefined })
    await listTransactions(db, { userId: wallet.userId, limit: 20, before: '5' })
    await findProofStates(db, [signing?.slug ?? '', 'AAAAAAAAAAAAAAAAAAAAAA'])
    await findProof({ db: db, fetchNodes: createNodeReader(db) }, signing?.slug ?? '')
    expect(plans.length).toBe(4)
    for (const plan of plans.slice(0, 2)) {
      expect(plan).toMatch(/using wallets_addresses/)
      expect(plan).toMatch(/using signings_0_wallet_id_id_idx/)
      expect(plan).toMatch(/using proofs_pkey/)
    }
    expect(plans[2]).toMatch(/signing_lookups_slug_key/)
    for (const index of [
      'signing_lookups_slug_key',
      'signings_0_pkey',
      'wallets_pkey',
      'verifications_pkey',
      'proofs_pkey',
    ]) {
      expect(plans[3]).toContain(`Index Scan using ${index}`)
    }
    expect(plans.join('\n')).not.toContain('Seq Scan')
  })

  test('reads the newest of a wallet without its other rows, even if most wallets have few', async () => {
    const { db } = subject.database
    const heavy = await createTestWallet(subject.store)
    await sql`
      with made as (
        insert into users (issuer, subject, email, kms_key_id, created_at, last_login_at)
        select 'https://many.example', i, '', decode(repeat('00', 16), 'hex'), now(), now() from generate_series(1, 500) as i returning id
      ), provisioned as (
        insert into wallets (user_id, address, kms_key_id, entropy_hash, entropy_sig, satellite_source, witness, created_at)
        select id, decode(repeat('00', 20), 'hex'), decode(repeat('00', 16), 'hex'), sha256(''), '', '', '{}', now() from made returning id
      )
      insert into signings ${COLUMNS}
      select nextval('signings_id'), id, ${SIGNED}
      from (select max(id) as verification_id from verifications) as v, (
        select id, i from provisioned, generate_series(1, 10) as i
        union all select ${heavy.id}::uuid, i from generate_series(1, 500) as i
        order by i
      ) as many`.execute(db)
    await sql`analyze`.execute(db)
    const explained = explain(db)
    await listTransactions(explained.db, { userId: heavy.userId, limit: 20, before: undefined })
    await listTransactions(explained.db, { userId: heavy.userId, limit: 20, before: '300' })
    expect(explained.plans.length).toBe(2)
    for (const plan of explained.plans) {
      expect(plan).toMatch(/Index (?:Only )?Scan using signings_0_wallet_id_id_idx/)
      expect(plan).not.toMatch(/Incremental Sort|Bitmap/)
    }
  })
})
