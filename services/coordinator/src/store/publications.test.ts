import type { Hex } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { explain } from '../../test/store/explain.ts'
import { pinRows } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { CONFIRM_QUEUE, type Jobs, PUBLISH_QUEUE } from './jobs.ts'
import { createPublicationStore, type PublicationStore, type PublicationTransaction, sumGas } from './publications.ts'
import type { Wallet } from './wallets.ts'

const CHAIN = 31_337
const ACCOUNT: Hex = `0x${'a1'.repeat(20)}`
const CONTRACT: Hex = `0x${'c0'.repeat(20)}`
const HASH: Hex = `0x${'ab'.repeat(32)}`

describe('publications', () => {
  let subject: TestStore
  let wallet: Wallet
  let store: PublicationStore
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
    store = createPublicationStore({ db: subject.database.db, jobs: subject.jobs })
  })
  afterAll(() => subject.stop())
  beforeEach(async () => {
    const { db } = subject.database
    await sql`truncate proofs, receipts, signings, signing_lookups, anchors, publication_transactions, publications`.execute(
      db,
    )
    await sql`delete from pgboss.job`.execute(db)
  })

  async function addProofs(count: number, pinnedAt = NOW): Promise<string[]> {
    const signings = Array.from({ length: count }, () => createTestSigning(wallet))
    await subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
    const slugs = signings.map(({ slug }) => slug)
    await pinRows(subject.database.db, slugs, { now: pinnedAt })
    return slugs
  }
  const createTransaction = (changes: Partial<PublicationTransaction> = {}): PublicationTransaction => ({
    hash: `0x${randomHex(32)}`,
    raw: `0x02${randomHex(100)}`,
    kind: 'publish',
    gas: 123_456n,
    maxFeePerGas: 3n * 10n ** 9n,
    maxPriorityFeePerGas: 10n ** 9n,
    ...changes,
  })
  const claim = (slugs: readonly string[], changes: Partial<Parameters<PublicationStore['claim']>[0]> = {}) =>
    store.claim({
      chainId: CHAIN,
      account: ACCOUNT,
      nonce: 0,
      contract: CONTRACT,
      calldata: '0x1234',
      slugs,
      transaction: createTransaction(),
      now: NOW,
      ...changes,
    })
  async function claimOne(slugs: readonly string[], changes: Partial<Parameters<PublicationStore['claim']>[0]> = {}) {
    expect(await claim(slugs, changes)).toBe(true)
    const publication = (await store.findOpen(CHAIN)).at(-1)
    if (publication === undefined) throw new Error('no publication')
    return publication
  }
  async function countRows(table: string, where = 'true') {
    const query = sql<{ n: number }>`select count(*)::int as n from ${sql.raw(table)} where ${sql.raw(where)}`
    return (await query.execute(subject.database.db)).rows[0]?.n
  }
  const countJobs = (queue: string) => countRows('pgboss.job', `name = '${queue}'`)
  const statusOf = async (slug = '') => (await subject.store.findProof(slug))?.status

  test('due: in the order of their pins, with all event data', async () => {
    const [late] = await addProofs(1, NOW + 2)
    const [early] = await addProofs(1, NOW + 1)
    const due = await store.findDue()
    expect(due.map(({ slug }) => slug)).toEqual([early, late])
    const proof = await subject.store.findProof(early ?? '')
    expect(due[0]).toEqual({
      slug: early,
      wallet: wallet.address,
      txHash: proof?.txHash,
      ipfsCid: `bafk${early}`,
      publishLimit: 200,
    })
  })

  test('due: at most 200, and only pinned ones', async () => {
    await addProofs(205)
    await subject.store.insertSignings({
      batch: createTestBatch(),
      signings: [createTestSigning(wallet)],
      now: NOW,
    })
    expect(await store.findDue()).toHaveLength(200)
  })

  test('a claim stores nonce, proofs, bytes and job in one transaction', async () => {
    const slugs = await addProofs(3)
    const transaction = createTransaction({ maxFeePerGas: 2n ** 200n })
    const publication = await claimOne(slugs, { transaction })
    expect(publication).toEqual({
      id: publication.id,
      status: 'pending',
      account: ACCOUNT,
      nonce: 0,
      contract: CONTRACT,
      calldata: '0x1234',
      mined: undefined,
      createdAt: NOW,
      transactions: [{ ...transaction, createdAt: NOW, sentAt: undefined }],
    })
    expect(await store.findDue()).toEqual([])
    expect(await store.findProofs(publication.id)).toHaveLength(3)
    expect(await countJobs(CONFIRM_QUEUE)).toBe(1)
  })

  test.each([
    ['a proof that another publication has', async () => void (await claim(await addProofs(1), { nonce: 9 }))],
    ['a nonce that is used', async () => void (await claim([], { nonce: 0 }))],
  ])('a claim of %s leaves nothing behind', async (_name, before) => {
    await before()
    const { rows } = await sql<{ slug: string }>`select slug from proofs`.execute(subject.database.db)
    const slugs = [...(await addProofs(2)), ...rows.map(({ slug }) => slug)]
    const counts = async () => [
      await countRows('publications'),
      await countRows('publication_transactions'),
      await countRows('proofs', 'publication_id is null'),
    ]
    const earlier = await counts()
    expect(await claim(slugs)).toBe(false)
    expect(await counts()).toEqual(earlier)
  })

  test('rejects a claim of a failed or unknown proof', async () => {
    const [slug = ''] = await addProofs(1)
    await store.failDue({ slug, failure: 'publish_reverted' })
    expect([await claim([slug]), await claim(['unknown'])]).toEqual([false, false])
    expect(await countRows('publications')).toBe(0)
  })

  test('stores no claim without a job', async () => {
    const slugs = await addProofs(1)
    const jobs: Jobs = { ...subject.jobs, insert: () => Promise.reject(new Error('no queue')) }
    const broken = createPublicationStore({ db: subject.database.db, jobs })
    const parameters = { chainId: CHAIN, account: ACCOUNT, nonce: 0, contract: CONTRACT, calldata: '0x12' as const }
    await expect(broken.claim({ ...parameters, slugs, transaction: createTransaction(), now: NOW })).rejects.toThrow(
      'no queue',
    )
    expect(await countRows('publications')).toBe(0)
    expect(await store.findDue()).toHaveLength(1)
  })

  test('one of many concurrent claims of a proof succeeds', async () => {
    const slugs = await addProofs(20)
    const claims = Array.from({ length: 10 }, (_, nonce) =>
      claim(nonce % 2 === 0 ? slugs : slugs.toReversed(), { nonce }),
    )
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1)
    expect(await countRows('publications')).toBe(1)
  })

  test('one of many concurrent claims of a nonce succeeds', async () => {
    const slugs = await addProofs(10)
    const claims = await Promise.all(slugs.map((slug) => claim([slug])))
    expect(claims.filter(Boolean)).toHaveLength(1)
    expect(await store.findDue()).toHaveLength(9)
  })

  test('the next nonce: only of this chain and account', async () => {
    const next = () => store.findNextNonce({ chainId: CHAIN, account: ACCOUNT })
    expect(await next()).toBe(0)
    await claim([], { nonce: 7 })
    await claim([], { nonce: 3 })
    await claim([], { nonce: 20, chainId: 1 })
    await claim([], { nonce: 30, account: `0x${'b2'.repeat(20)}` })
    expect(await next()).toBe(8)
    const [first] = await store.findOpen(CHAIN)
    await store.release({ id: first?.id ?? 0, status: 'lost' })
    expect(await next()).toBe(8)
  })

  test('open: of this chain, by nonce, until final', async () => {
    for (const nonce of [2, 0, 1]) await claim([], { nonce })
    await claim([], { nonce: 0, chainId: 1 })
    const [first, second] = await store.findOpen(CHAIN)
    expect((await store.findOpen(CHAIN)).map(({ nonce }) => nonce)).toEqual([0, 1, 2])
    await store.confirm({ id: first?.id ?? 0, txHash: HASH, blockNumber: 4 })
    await store.release({ id: second?.id ?? 0, status: 'lost' })
    expect(await store.findOpen(CHAIN)).toMatchObject([
      { nonce: 0, status: 'confirmed', mined: { txHash: HASH, blockNumber: 4 } },
      { nonce: 2, status: 'pending', mined: undefined },
    ])
    await store.finish({ id: first?.id ?? 0 })
    expect((await store.findOpen(CHAIN)).map(({ nonce }) => nonce)).toEqual([2])
  })

  test('unsent: the one with the highest fees each, by nonce, only of this chain and account', async () => {
    const find = () => store.findUnsent({ chainId: CHAIN, account: ACCOUNT })
    const transactions = [0, 1, 2].map(() => createTransaction())
    const [first, sent, lost] = transactions
    for (const nonce of [2, 1, 0]) await claim([], { nonce, transaction: transactions[nonce] ?? createTransaction() })
    await claim([], { chainId: 1 })
    await claim([], { account: `0x${'b2'.repeat(20)}` })
    const toUnsent = (of: PublicationTransaction | undefined, nonce: number) =>
      of && { nonce, hash: of.hash, raw: of.raw, kind: of.kind }
    expect(await find()).toEqual(transactions.map(toUnsent))
    await store.markSent({ hash: sent?.hash ?? '0x', now: NOW })
    const publications = await store.findOpen(CHAIN)
    const idOf = (of: PublicationTransaction | undefined) =>
      publications.find((item) => item.transactions[0]?.hash === of?.hash)?.id ?? 0
    await store.release({ id: idOf(lost), status: 'lost' })
    const dearer = createTransaction({ maxFeePerGas: 10n ** 21n, kind: 'cancel' })
    for (const id of [idOf(first), idOf(sent)]) {
      const transaction = id === idOf(first) ? dearer : createTransaction()
      await store.addTransaction({ id, status: 'pending', transaction, now: NOW })
    }
    expect(await find()).toEqual([toUnsent(dearer, 0)])
  })

  test('the daily gas omits publications of other days', async () => {
    const { db: filled } = subject.database
    await sql`
      with made as (
        insert into publications (chain_id, account, nonce, contract, calldata, created_at)
        select ${CHAIN}, decode(${ACCOUNT.slice(2)}, 'hex'), i, decode(${CONTRACT.slice(2)}, 'hex'), '',
          ${new Date(NOW)}::timestamptz + i * interval '1 minute'
        from generate_series(1, 20000) as i returning id
      )
      insert into publication_transactions
        (tx_hash, publication_id, kind, raw, gas, max_fee_per_gas, max_priority_fee_per_gas, created_at)
      select sha256(id::text::bytea), id, 'publish', '', 7, 1, 1, now() from made`.execute(filled)
    await sql`analyze publications, publication_transactions`.execute(filled)
    const asked = { chainId: CHAIN, account: ACCOUNT, since: NOW + 19_990 * 60_000 }
    expect(await sumGas(filled, asked)).toBe(70n)
    const { plans, db } = explain(filled)
    await sumGas(db, asked)
    expect(plans).toEqual([expect.stringContaining('using publications_by_time')])
  })

  test('replacements: stored once, the one with the highest fees last, none after completion', async () => {
    const { id } = await claimOne(await addProofs(1))
    const dear = createTransaction({ maxFeePerGas: 10n ** 21n, kind: 'cancel' })
    const dearer = createTransaction({ maxFeePerGas: 10n ** 21n + 1n })
    const add = (transaction: PublicationTransaction, status: 'pending' | 'confirmed' = 'pending') =>
      store.addTransaction({ id, status, transaction, now: NOW })
    expect(await add(dearer)).toBe(true)
    expect(await add(dear)).toBe(true)
    expect([await add(dear), await add(createTransaction(), 'confirmed')]).toEqual([false, false])
    await store.markSent({ hash: dear.hash, now: NOW + 5 })
    const [publication] = await store.findOpen(CHAIN)
    expect(publication?.transactions.slice(1)).toEqual([
      { ...dear, createdAt: NOW, sentAt: NOW + 5 },
      { ...dearer, createdAt: NOW, sentAt: undefined },
    ])
    await store.release({ id, status: 'lost' })
    expect(await add(createTransaction())).toBe(false)
  })

  test('confirms, moves and finalizes a publication with its proofs', async () => {
    const [slug = ''] = await addProofs(1)
    const { id } = await claimOne([slug])
    const at = { id, txHash: HASH, blockNumber: 4 }
    expect([await store.move(at), await store.finish({ id })]).toEqual([false, false])
    expect([await store.confirm(at), await store.confirm({ ...at, blockNumber: 5 })]).toEqual([true, false])
    expect(await subject.store.findProof(slug)).toMatchObject({
      status: 'complete',
      onchainTxHash: HASH,
      onchainBlockNumber: 4,
    })
    const other: Hex = `0x${'cd'.repeat(32)}`
    expect(await store.move({ id, txHash: other, blockNumber: 9 })).toBe(true)
    expect(await subject.store.findProof(slug)).toMatchObject({ onchainTxHash: other, onchainBlockNumber: 9 })
    const isFinal = async () =>
      [await subject.store.findProof(slug), ...(await subject.store.findProofStates([slug]))].map((one) => one?.isFinal)
    expect(await isFinal()).toEqual([false, false])
    expect([await store.finish({ id }), await store.finish({ id }), await store.move(at)]).toEqual([true, false, false])
    expect(await subject.store.findProof(slug)).toMatchObject({ onchainBlockNumber: 9 })
    expect(await isFinal()).toEqual([true, true])
  })

  test('a final one can never change', async () => {
    const [slug = ''] = await addProofs(1)
    const { id } = await claimOne([slug])
    await store.confirm({ id, txHash: HASH, blockNumber: 4 })
    const { db } = subject.database
    const move = () => sql`update publications set block_number = block_number + 1 where id = ${id}`.execute(db)
    await move()
    await store.finish({ id })
    await expect(move()).rejects.toMatchObject({ code: '23001' })
    const release = sql`update proofs set publication_id = null where slug = ${slug}`.execute(db)
    await expect(release).rejects.toMatchObject({ code: '23001' })
  })

  test.each([
    [2, 1],
    [3, 2],
    [10, 5],
    [200, 100],
  ])('reverted with %d proofs: due again, at most %d together, with a job', async (size, limit) => {
    const slugs = await addProofs(size)
    const { id } = await claimOne(slugs)
    const at = { id, txHash: HASH, blockNumber: 4 }
    expect(await store.revert(at)).toBe(true)
    const due = await store.findDue()
    expect([due.length, new Set(due.map(({ publishLimit }) => publishLimit))]).toEqual([size, new Set([limit])])
    expect(await countJobs(PUBLISH_QUEUE)).toBe(1)
    expect([await store.revert(at), await store.confirm(at), await store.release({ id, status: 'lost' })]).toEqual([
      false,
      false,
      false,
    ])
  })

  test('a single reverted proof fails with the reason', async () => {
    const [slug = ''] = await addProofs(1)
    const { id } = await claimOne([slug])
    expect(await store.revert({ id, txHash: HASH, blockNumber: 4 })).toBe(true)
    expect(await countRows('proofs', `status = 'onchain_failed' and failure = 'publish_reverted'`)).toBe(1)
    expect(await countJobs(PUBLISH_QUEUE)).toBe(0)
  })

  test('cancelled: all proofs fail permanently', async () => {
    const slugs = await addProofs(2)
    const { id } = await claimOne(slugs)
    const at = { id, txHash: HASH, blockNumber: 4 }
    expect(await store.fail({ ...at, status: 'cancelled', failure: 'publish_cancelled' })).toBe(true)
    expect([await store.confirm(at), await store.revert(at), await store.release({ id, status: 'lost' })]).toEqual([
      false,
      false,
      false,
    ])
    expect([await statusOf(slugs[0]), await statusOf(slugs[1])]).toEqual(['onchain_failed', 'onchain_failed'])
    expect(await countRows('proofs', `failure = 'publish_cancelled'`)).toBe(2)
  })

  test('lost: proofs are due again with a job', async () => {
    const slugs = await addProofs(4)
    const { id } = await claimOne(slugs)
    expect([await store.release({ id, status: 'lost' }), await store.release({ id, status: 'lost' })]).toEqual([
      true,
      false,
    ])
    expect((await store.findDue()).map(({ publishLimit }) => publishLimit)).toEqual([200, 200, 200, 200])
    expect(await countJobs(PUBLISH_QUEUE)).toBe(1)
    expect(await claim(slugs, { nonce: 1 })).toBe(true)
  })

  test('one of many concurrent completions of a publication succeeds', async () => {
    const slugs = await addProofs(3)
    const { id } = await claimOne(slugs)
    const at = { id, txHash: HASH, blockNumber: 4 }
    const outcomes = await Promise.all([
      store.confirm(at),
      store.revert(at),
      store.release({ id, status: 'lost' }),
      store.fail({ ...at, status: 'cancelled', failure: 'publish_cancelled' }),
      store.confirm(at),
    ])
    expect(outcomes.filter(Boolean)).toHaveLength(1)
    const statuses = new Set(await Promise.all(slugs.map((slug) => statusOf(slug))))
    expect(statuses.size).toBe(1)
  })

  test('overdue: only proofs without a publication that were pinned before, limited to the given ones', async () => {
    const [old = '', claimed = ''] = await addProofs(2, NOW - 1)
    const [young = ''] = await addProofs(1, NOW)
    await claim([claimed])
    expect(await store.failOverdue({ pinnedBefore: NOW, slugs: [claimed, young] })).toBe(0)
    expect(await store.failOverdue({ pinnedBefore: NOW })).toBe(1)
    expect([await statusOf(old), await statusOf(claimed), await statusOf(young)]).toEqual([
      'onchain_failed',
      'pending_onchain',
      'pending_onchain',
    ])
    expect(await store.failDue({ slug: claimed, failure: 'publish_reverted' })).toBe(false)
    expect(await store.failOverdue({ pinnedBefore: NOW })).toBe(0)
  })
})

test('publications without the database', async () => {
  const gone = await startTestStore()
  const { db } = gone.database
  const publications = createPublicationStore({ db, jobs: gone.jobs })
  await gone.stop()
  await expect(publications.findDue()).rejects.toMatchObject({ code: 'database_unavailable' })
})
