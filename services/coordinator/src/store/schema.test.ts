import { randomUUID } from 'node:crypto'
import { isProofTransition, type ProofStatus, proofStatuses } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
  const update = (slug: string, set: string) => subject.query(`update attestations set ${set} where slug = '${slug}'`)

  /** What a row must have to be in each state; receipt and CID are the same throughout. */
  const pinned = `receipt_bytes = '{"version":1}', ipfs_cid = 'bafkcid'`
  const fields: Record<ProofStatus, string> = {
    pending_pin: '',
    pin_failed: '',
    pending_onchain: `, ${pinned}`,
    onchain_failed: `, ${pinned}`,
    complete: `, ${pinned}, onchain_tx_hash = decode(repeat('ab', 32), 'hex'), onchain_block_number = 7`,
  }
  const moveTo = (slug: string, status: ProofStatus) => update(slug, `status = '${status}'${fields[status]}`)
  const way: Record<ProofStatus, readonly ProofStatus[]> = {
    pending_pin: [],
    pin_failed: ['pin_failed'],
    pending_onchain: ['pending_onchain'],
    onchain_failed: ['pending_onchain', 'onchain_failed'],
    complete: ['pending_onchain', 'complete'],
  }

  test('no statistics are made of documents: they take longest, and no plan uses them', async () => {
    const { rows } = await sql<{ name: string }>`
      select attrelid::regclass || '.' || attname as name from pg_attribute
      where atttypid = 'jsonb'::regtype and attnum > 0 and not attisdropped and attstattarget is distinct from 0
        and attrelid in (select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace)`.execute(
      subject.database.db,
    )
    expect(rows).toEqual([])
  })

  test.each(pairs)('specification §3: the table knows whether %s goes to %s', async (from, to) => {
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

  /** The rows of a signing once more, with one value changed: those that must be new are new. */
  const copy = (table: 'pending_transactions' | 'attestations', slug: string, changes: Record<string, string>) => {
    const fresh: Record<string, string> =
      table === 'attestations'
        ? { slug: `'${randomHex(8)}'`, entropy_hash: `decode('${randomHex(32)}', 'hex')` }
        : { id: `nextval('pending_transactions_id_seq')`, digest: `decode('${randomHex(32)}', 'hex')` }
    const columns = {
      pending_transactions: 'id, wallet_id, digest, signature, tx_hash, chain_id, tx_metadata, created_at',
      attestations: `pending_transaction_id, slug, verification_id, statement, leaf_index, path, witness, entropy_hash, release,
        created_at`,
    }[table]
    const values = columns.split(/,\s+/).map((name) => ({ ...fresh, ...changes })[name] ?? name)
    const ofSlug = `pending_transaction_id from attestations where slug = '${slug}'`
    const row = table === 'attestations' ? `slug = '${slug}'` : `id = (select ${ofSlug})`
    return subject.query(`insert into ${table} (${columns}) select ${values.join(', ')} from ${table} where ${row}`)
  }

  test('a signing is of a wallet, an attestation of a signing and a verification: also among others that are', async () => {
    const { slug } = await insert()
    await copy('pending_transactions', slug, {})
    const another = { pending_transaction_id: '(select max(id) from pending_transactions)' }
    const wrong = [
      ['pending_transactions', { wallet_id: 'gen_random_uuid()' }],
      ['attestations', { pending_transaction_id: '-1' }],
      ['attestations', { ...another, verification_id: '-1' }],
    ] as const
    for (const [table, changes] of wrong) {
      await expect(copy(table, slug, changes)).rejects.toMatchObject(FOREIGN_KEY_VIOLATION)
    }
    await copy('attestations', slug, another)
    const [good, bad] = [createTestSigning(wallet), createTestSigning({ ...wallet, id: randomUUID() })]
    const mixed = { batch: createTestBatch(), signings: [good, bad], now: NOW }
    await expect(subject.store.insertSignings(mixed)).rejects.toThrow()
    expect(await subject.store.findProof(good.slug)).toBeUndefined()
  })

  test('a sixth state does not exist', async () => {
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

  test('a complete proof shows its receipt, CID and block; a frozen receipt shows only when pinned', async () => {
    const { slug } = await insert()
    await update(slug, `receipt_bytes = '{"version":1}'`)
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

  test.each([`receipt_bytes = 'other'`, 'receipt_bytes = null', `ipfs_cid = 'bafkother'`, 'ipfs_cid = null'])(
    'a receipt never changes: %s',
    async (change) => {
      const { slug } = await insert()
      await moveTo(slug, 'pending_onchain')
      await expect(update(slug, change)).rejects.toMatchObject(RESTRICT_VIOLATION)
    },
  )

  test.each([
    `onchain_tx_hash = decode(repeat('cd', 32), 'hex')`,
    'onchain_block_number = 8',
    'onchain_block_number = null',
    'publication_id = null',
  ])('of a final publication no proof changes: %s', async (change) => {
    const { slug } = await insert()
    await moveTo(slug, 'pending_onchain')
    await subject.query(`with made as (
        insert into publications (chain_id, account, nonce, contract, calldata, created_at)
        select 1, decode(repeat('00', 20), 'hex'), count(*), decode(repeat('00', 20), 'hex'), '', now() from publications returning id
      ) update attestations set publication_id = made.id from made where slug = '${slug}'`)
    const settle = (status: string) =>
      subject.query(`update publications set status = '${status}', tx_hash = decode(repeat('ab', 32), 'hex'), block_number = 7
        where id = (select publication_id from attestations where slug = '${slug}')`)
    await settle('confirmed')
    await moveTo(slug, 'complete')
    await update(slug, 'onchain_block_number = 9')
    await settle('final')
    await expect(update(slug, change)).rejects.toMatchObject(RESTRICT_VIOLATION)
    await update(slug, 'onchain_block_number = 9')
    await expect(settle('confirmed')).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test('the first receipt to be frozen stays: the next is refused before any pin', async () => {
    const { slug } = await insert()
    await update(slug, `receipt_bytes = 'one'`)
    await expect(update(slug, `receipt_bytes = 'two'`)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test.each([
    `slug = 'other'`,
    `statement = '{}'`,
    `witness = '{}'`,
    `release = decode(repeat('00', 64), 'hex')`,
    `entropy_hash = decode(repeat('00', 32), 'hex')`,
    `path = ''`,
    'leaf_index = 9',
    `created_at = 'epoch'`,
  ])('what was signed never changes: attestations %s', async (change) => {
    const { slug } = await insert()
    await expect(update(slug, change)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

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

  test('a wallet is not deleted and made anew', async () => {
    const { id } = await createTestWallet(subject.store)
    await expect(subject.query(`delete from wallets where id = '${id}'`)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test.each([
    [`pending_transactions set signature = decode(repeat('00', 65), 'hex')`],
    [`pending_transactions set tx_metadata = '{}'`],
    [`batches set quote = 'another'`],
    [`verifications set tcb_status = 'OutOfDate'`],
    [`verifications set quote_verified = false`],
    [`collaterals set bytes = 'another', hash = sha256('another')`],
    [`self_attestations set json = 'another', hash = sha256('another')`],
  ])('evidence never changes: %s', async (change) => {
    await insert()
    await expect(subject.query(`update ${change}`)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })

  test('a collateral under a wrong hash is refused', async () => {
    const text = `insert into collaterals (hash, bytes) values (decode('${randomHex(32)}', 'hex'), 'bytes')`
    await expect(subject.query(text)).rejects.toMatchObject(CHECK_VIOLATION)
  })

  test('a proof starts as pending_pin', async () => {
    const signing = await insert()
    const copy = `insert into attestations select pending_transaction_id, 'copy', verification_id, statement, leaf_index, path,
      witness, entropy_hash, release, 'pin_failed', null, null, null, null, created_at
      from attestations where slug = '${signing.slug}'`
    await expect(subject.query(copy)).rejects.toMatchObject(RESTRICT_VIOLATION)
  })
})
