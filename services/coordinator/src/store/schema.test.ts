import { randomUUID } from 'node:crypto'
import { isProofTransition, type ProofStatus, proofStatuses } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { completeRow, freezeRow } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import type { Wallet } from './wallets.ts'

const RESTRICT_VIOLATION = { code: '23001' }
const CHECK_VIOLATION = { code: '23514' }
const FOREIGN_KEY_VIOLATION = { code: '23503' }
const pairs = proofStatuses.flatMap((from) => proofStatuses.map((to) => [from, to] as const))

describe('the rules of the database', () => {
  let subject: TestStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  const insert = async () => {
    const signing = createTestSigning(wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    return signing
  }
  const update = (slug: string, set: string) => subject.query(`update proofs set ${set} where slug = '${slug}'`)

  const toPinned = async (slug: string) => {
    await freezeRow(subject.database.db, slug, Buffer.from('{"version":1}'))
    return `ipfs_cid = 'bafkcid'`
  }
  /** Receipt and CID never change. */
  const moveTo = async (slug: string, status: ProofStatus) => {
    const { status: before } = (await subject.store.findProof(slug)) ?? {}
    if (status === 'complete' && before === 'pending_onchain')
      return void (await completeRow(subject.database.db, slug))
    const isFrozen = status !== 'pin_failed' && status !== 'pending_pin' && before === 'pending_pin'
    return void (await update(slug, `status = '${status}'${isFrozen ? `, ${await toPinned(slug)}` : ''}`))
  }
  const way: Record<ProofStatus, readonly ProofStatus[]> = {
    pending_pin: [],
    pin_failed: ['pin_failed'],
    pending_onchain: ['pending_onchain'],
    onchain_failed: ['pending_onchain', 'onchain_failed'],
    complete: ['pending_onchain', 'complete'],
  }

  test('collects no statistics about documents, which take longest and are never used', async () => {
    const { rows } = await sql<{ name: string }>`
      select attrelid::regclass || '.' || attname as name from pg_attribute
      where atttypid = 'jsonb'::regtype and attnum > 0 and not attisdropped and attstattarget is distinct from 0
        and attrelid in (select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace)`.execute(
      subject.database.db,
    )
    expect(rows).toEqual([])
  })

  test.each(pairs)('specification §3: the table defines whether %s may change to %s', async (from, to) => {
    const { rows } = await sql<{ ok: boolean }>`select is_proof_transition(${from}, ${to}) as ok`.execute(
      subject.database.db,
    )
    expect(rows).toEqual([{ ok: isProofTransition(from, to) }])
  })

  test.each(pairs.filter(([from, to]) => isProofTransition(from, to)))('%s goes to %s', async (from, to) => {
    const { slug } = await insert()
    for (const status of way[from]) await moveTo(slug, status)
    await moveTo(slug, to)
    expect(await subject.store.findProof(slug)).toMatchObject({ status: to })
  })

  test.each(pairs.filter(([from, to]) => from !== to && !isProofTransition(from, to)))(
    '%s does not go to %s',
    async (from, to) => {
      const { slug } = await insert()
      for (const status of way[from]) await moveTo(slug, status)
      await expect(moveTo(slug, to)).rejects.toMatchObject(RESTRICT_VIOLATION)
      expect(await subject.store.findProof(slug)).toMatchObject({ status: from })
    },
  )

  test('a signing must match a wallet and a verification', async () => {
    const { slug } = await insert()
    const columns = 'version, chain_id, created_at, kind, tx_hash, digest, signature, data, facts, release'
    const copy = (changes: { wallet?: string; verification?: string }) =>
      subject.query(`insert into signings (id, wallet_id, verification_id, ${columns})
        select nextval('signings_id'), ${changes.wallet ?? 'wallet_id'}, ${changes.verification ?? 'verification_id'}, ${columns}
        from signings where id = (select signing_id from proofs where slug = '${slug}')`)
    await copy({})
    await expect(copy({ wallet: 'gen_random_uuid()' })).rejects.toMatchObject(FOREIGN_KEY_VIOLATION)
    await expect(copy({ verification: '-1' })).rejects.toMatchObject(FOREIGN_KEY_VIOLATION)
    const [good, bad] = [createTestSigning(wallet), createTestSigning({ ...wallet, id: randomUUID() })]
    const mixed = { batch: createTestBatch(), signings: [good, bad], now: NOW }
    await expect(subject.store.insertSignings(mixed)).rejects.toThrow()
    expect(await subject.store.findProof(good.slug)).toBeUndefined()
  })

  test('rejects a sixth status', async () => {
    const { slug } = await insert()
    await expect(update(slug, `status = 'lost'`)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test('a proof is pinned only with its receipt, and complete only with its block', async () => {
    const { slug } = await insert()
    await expect(update(slug, `status = 'pending_onchain'`)).rejects.toMatchObject(CHECK_VIOLATION)
    await expect(update(slug, `ipfs_cid = 'bafkcid'`)).rejects.toMatchObject(CHECK_VIOLATION)
    await moveTo(slug, 'pending_onchain')
    await expect(update(slug, `status = 'complete'`)).rejects.toMatchObject(CHECK_VIOLATION)
  })

  test('a complete proof shows receipt, CID and block; a frozen receipt shows only after it is pinned', async () => {
    const { slug } = await insert()
    await toPinned(slug)
    expect(await subject.store.findProof(slug)).toMatchObject({ receipt: null, ipfsCid: null })
    await moveTo(slug, 'pending_onchain')
    const { receipt, ipfsCid } = (await subject.store.findProof(slug)) ?? {}
    expect([receipt && Buffer.from(receipt).toString(), ipfsCid]).toEqual(['{"version":1}', 'bafkcid'])
    await moveTo(slug, 'complete')
    expect(await subject.store.findProof(slug)).toMatchObject({
      status: 'complete',
      onchainTxHash: `0x${'ab'.repeat(32)}`,
      onchainBlockNumber: 7,
    })
  })

  test.each([`ipfs_cid = 'bafkother'`, 'ipfs_cid = null'])('a receipt never changes: %s', async (change) => {
    const { slug } = await insert()
    await moveTo(slug, 'pending_onchain')
    await expect(update(slug, change)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test.each(['set bytes = sha256(bytes)', 'delete'])('a frozen receipt stays: rejects %s', async (change) => {
    const { slug } = await insert()
    await toPinned(slug)
    const of = `where signing_id = (select signing_id from proofs where slug = '${slug}')`
    const text = change === 'delete' ? `delete from receipts ${of}` : `update receipts ${change} ${of}`
    await expect(subject.query(text)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test('freezes nothing for a pinned or unknown proof', async () => {
    const { slug } = await insert()
    await update(slug, `status = 'pin_failed'`)
    await expect(freezeRow(subject.database.db, slug)).rejects.toMatchObject(RESTRICT_VIOLATION)
    await expect(subject.query(`insert into receipts values (-1, '')`)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test.each([`tx_hash = decode(repeat('cd', 32), 'hex')`, 'block_number = 8', `status = 'confirmed'`])(
    'a final publication never changes: %s',
    async (change) => {
      const { slug } = await insert()
      await moveTo(slug, 'pending_onchain')
      const id = await completeRow(subject.database.db, slug)
      await subject.query(`update publications set block_number = 9 where id = ${id}`)
      await subject.query(`update publications set status = 'final' where id = ${id}`)
      await expect(subject.query(`update publications set ${change} where id = ${id}`)).rejects.toMatchObject(
        RESTRICT_VIOLATION,
      )
      await expect(update(slug, 'publication_id = null')).rejects.toMatchObject(RESTRICT_VIOLATION)
    },
  )

  test.each([`slug = 'other'`, 'signing_id = -1', `created_at = 'epoch'`])(
    'signed data never changes: proofs %s',
    async (change) => {
      const { slug } = await insert()
      await expect(update(slug, change)).rejects.toMatchObject(RESTRICT_VIOLATION)
    },
  )

  test.each([
    `address = decode(repeat('00', 20), 'hex')`,
    `kms_key_id = decode(repeat('00', 16), 'hex')`,
    `entropy_hash = decode(repeat('00', 32), 'hex')`,
    `entropy_sig = decode(repeat('00', 64), 'hex')`,
    `satellite_source = 'another'`,
    `witness = '{}'`,
    'user_id = gen_random_uuid()',
    `created_at = 'epoch'`,
  ])('a wallet never changes: %s', async (change) => {
    await expect(subject.query(`update wallets set ${change} where id = '${wallet.id}'`)).rejects.toMatchObject(
      RESTRICT_VIOLATION,
    )
    expect(await subject.store.findWallet(wallet.userId)).toEqual(wallet)
  })

  test('a wallet cannot be deleted and created again', async () => {
    const { id } = await createTestWallet(subject.store)
    await expect(subject.query(`delete from wallets where id = '${id}'`)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test.each([
    [`signings set signature = decode(repeat('00', 65), 'hex')`],
    [`signings set data = '\\x01'`],
    [`signings set facts = ''`],
    [`signings set release = decode(repeat('00', 64), 'hex')`],
    [`signings set log_index = 9`],
    [`signing_lookups set slug = 'other'`],
    [`signing_lookups set sample = null`],
    [`batches set quote = 'another'`],
    [`verifications set tcb_status = 'OutOfDate'`],
    [`verifications set quote_verified = false`],
    [`collaterals set bytes = 'another', hash = sha256('another')`],
    [`self_attestations set json = 'another', hash = sha256('another')`],
  ])('evidence never changes: %s', async (change) => {
    await insert()
    await expect(subject.query(`update ${change}`)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test('rejects collateral under a wrong hash', async () => {
    const text = `insert into collaterals (hash, bytes) values (decode('${randomHex(32)}', 'hex'), 'bytes')`
    await expect(subject.query(text)).rejects.toMatchObject(CHECK_VIOLATION)
  })

  test('a proof starts as pending_pin', async () => {
    const signing = await insert()
    const copy = `insert into proofs (signing_id, slug, status, created_at)
      select -1, 'copy', 'pin_failed', created_at from proofs where slug = '${signing.slug}'`
    await expect(subject.query(copy)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })
})
