import { hash } from 'node:crypto'
import { toCanonicalJson, toHex } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { openJobs, PIN_QUEUE } from './jobs.ts'
import { openDatabase } from './openDatabase.ts'
import { createStore } from './openStore.ts'
import { findSigned, type Signing, unpackFacts } from './signings.ts'
import type { Wallet } from './wallets.ts'

describe('signings', () => {
  let subject: TestStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  const count = async (table: string, where = 'true') => {
    const query = sql<{ n: number }>`select count(*)::int as n from ${sql.raw(table)} where ${sql.raw(where)}`
    return (await query.execute(subject.database.db)).rows[0]?.n
  }
  const countJobs = (slug: string) => count('pgboss.job', `name = '${PIN_QUEUE}' and data -> 'slugs' ? '${slug}'`)
  const toSigned = ({ walletId, statement, slug }: Signing & { version: 1 }) => ({
    walletId,
    digest: statement.digest,
    signature: statement.signature,
    slug,
  })

  test('lists when a user signed, newest first, without other users', async () => {
    const [own, other] = [await createTestWallet(subject.store), await createTestWallet(subject.store)]
    for (const [walletOf, now] of [
      [own, NOW],
      [own, NOW + 1000],
      [other, NOW + 2000],
    ] as const) {
      await subject.store.insertSignings({ batch: createTestBatch(), signings: [createTestSigning(walletOf)], now })
    }
    const find = (position: number) => subject.store.findSignedAt({ userId: own.userId, position })
    expect(await Promise.all([1, 2, 3].map(find))).toEqual([NOW + 1000, NOW, undefined])
  })

  test('commits a signing with its proof and job', async () => {
    const signing = createTestSigning(wallet)
    const signed = await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    expect(signed).toEqual([toSigned(signing)])
    expect(await findSigned(subject.database.db, [{ walletId: wallet.id, digest: signing.statement.digest }])).toEqual(
      signed,
    )
    expect(await countJobs(signing.slug)).toBe(1)
    expect(await subject.store.findProof(signing.slug)).toEqual({
      slug: signing.slug,
      kind: 'transaction',
      txHash: signing.statement.txHash,
      chainId: 84532,
      walletAddress: wallet.address,
      status: 'pending_pin',
      ipfsCid: null,
      onchainTxHash: null,
      onchainBlockNumber: null,
      kmsQuoteVerified: true,
      receipt: null,
      createdAt: NOW,
      isFinal: false,
    })
  })

  test('a job waits for the pipeline delay', async () => {
    const signing = createTestSigning(wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    const { rows } = await sql<{ delay: number }>`
      select extract(epoch from start_after - created_on)::float8 as delay
      from pgboss.job where data -> 'slugs' ? ${signing.slug}`.execute(subject.database.db)
    expect(rows).toEqual([{ delay: 1 }])
  })

  test('proofs committed together share few jobs, each proof one', async () => {
    const signings = Array.from({ length: 20 }, () => createTestSigning(wallet))
    await subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
    const { rows } = await sql<{ slugs: string[] }>`
      select data -> 'slugs' as slugs from pgboss.job
      where data -> 'slugs' ?| ${signings.map(({ slug }) => slug)}::text[]`.execute(subject.database.db)
    expect(rows.map(({ slugs }) => slugs.length).toSorted()).toEqual([4, 8, 8])
    expect(rows.flatMap(({ slugs }) => slugs).toSorted()).toEqual(signings.map(({ slug }) => slug).toSorted())
  })

  test('returns all content of a receipt unchanged, with hex in lower case', async () => {
    const batch = createTestBatch({ eventLog: '[{"imr":3,"digest":"\\u00e4 \\"quoted\\" {}"}]' })
    const signing = createTestSigning(wallet)
    await subject.store.insertSignings({ batch, signings: [signing], now: NOW })
    const row = await subject.database.db
      .selectFrom('proofs as a')
      .innerJoin('signings as p', 'p.id', 'a.signing_id')
      .innerJoin('verifications as v', 'v.id', 'p.verification_id')
      .innerJoin('batches as b', (join) =>
        join.onRef('b.boot_id', '=', 'v.boot_id').onRef('b.sequence', '=', 'v.sequence'),
      )
      .innerJoin('collaterals as c', 'c.hash', 'v.collateral_hash')
      .innerJoin('self_attestations as s', 's.hash', 'v.self_attestation_hash')
      .where('a.slug', '=', signing.slug)
      .select(['p.facts', 'p.data', 'p.digest', 'p.signature', 'p.tx_hash', 'release', 'tcb_status', 'quote'])
      .select(['event_log', 'measurement', 'config', 'previous', 'c.bytes', 's.json', 'coordinator_mode', 'leaves'])
      .executeTakeFirstOrThrow()
    const { statement, witness } = signing
    const txMetadata = { ...signing.txMetadata, to: `0x${'ab'.repeat(20)}` }
    expect(unpackFacts(row)).toEqual({ subject: txMetadata, statement, witness, leafIndex: 0 })
    expect(Buffer.from(row.release ?? []).toString('hex')).toBe(signing.release)
    expect(row.tcb_status).toBe('UpToDate')
    expect(Buffer.from(row.quote)).toEqual(batch.quote)
    expect(row.event_log).toBe(batch.eventLog)
    expect(row.measurement).toEqual(batch.measurement)
    expect(row.config).toEqual(batch.config)
    expect(Buffer.from(row.bytes)).toEqual(batch.collateral)
    expect(Buffer.from(row.json)).toEqual(Buffer.from(toCanonicalJson(batch.selfAttestation)))
    expect(toHex(row.leaves)).toBe(batch.leaves.join(''))
  })

  test('50 concurrent identical calls create one row, slug, signature and job', async () => {
    const digest = createTestSigning(wallet).statement.digest
    const batch = createTestBatch()
    const calls = Array.from({ length: 50 }, () => createTestSigning(wallet, digest))
    const answers = await Promise.all(
      calls.map((signing) => subject.store.insertSignings({ batch, signings: [signing], now: NOW })),
    )
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
    const [winner] = answers[0] ?? []
    expect(calls.map(({ slug }) => slug)).toContain(winner?.slug)
    expect(await count('signings', `digest = '\\x${digest.slice(2)}'`)).toBe(1)
    expect(await count('batches', `boot_id = '\\x${batch.bootId}'`)).toBe(1)
    expect(await count('verifications', `boot_id = '\\x${batch.bootId}'`)).toBe(1)
    const jobs = await Promise.all(calls.map(({ slug }) => countJobs(slug)))
    expect(jobs.reduce<number>((sum, n) => sum + (n ?? 0), 0)).toBe(1)
  })

  test('calls with shared pairs in opposite order neither deadlock nor disagree', async () => {
    const digests = Array.from({ length: 40 }, () => createTestSigning(wallet).statement.digest)
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => {
        const signings = digests.map((digest) => createTestSigning(wallet, digest))
        if (index % 2 === 1) signings.reverse()
        return subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
      }),
    )
    const sorted = answers.map((answer) => answer.toSorted((a, b) => (String(a.digest) < String(b.digest) ? -1 : 1)))
    for (const answer of sorted) expect(answer).toEqual(sorted[0])
    expect(sorted[0]).toHaveLength(40)
  })

  test('a call with known, new and repeated pairs returns each pair once', async () => {
    const known = createTestSigning(wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [known], now: NOW })
    const fresh = createTestSigning(wallet)
    const signings = [
      createTestSigning(wallet, known.statement.digest),
      fresh,
      createTestSigning(wallet, fresh.statement.digest),
    ]
    const answers = await subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
    expect(answers).toHaveLength(2)
    expect(answers).toEqual(expect.arrayContaining([toSigned(known), toSigned(fresh)]))
  })

  test('the same digest of two wallets is two signings', async () => {
    const other = await createTestWallet(subject.store)
    const first = createTestSigning(wallet)
    const second = createTestSigning(other, first.statement.digest)
    const answers = await subject.store.insertSignings({
      batch: createTestBatch(),
      signings: [first, second],
      now: NOW,
    })
    expect(answers).toHaveLength(2)
    expect(await findSigned(subject.database.db, [{ walletId: other.id, digest: first.statement.digest }])).toEqual([
      toSigned(second),
    ])
  })

  test('commits a full batch of 256, with quote and collateral once', async () => {
    const batch = createTestBatch({ collateral: Buffer.from('{"of":"the full batch"}') })
    const signings = Array.from({ length: 256 }, () => createTestSigning(wallet))
    const halves = [signings.slice(0, 128), signings.slice(128)]
    const answers = await Promise.all(
      halves.map((half) => subject.store.insertSignings({ batch, signings: half, now: NOW })),
    )
    expect(answers.flat()).toHaveLength(256)
    expect(await count('batches', `boot_id = '\\x${batch.bootId}'`)).toBe(1)
    expect(await count('collaterals', `hash = '\\x${hash('sha256', batch.collateral)}'`)).toBe(1)
    expect(await findSigned(subject.database.db, answers.flat())).toHaveLength(256)
  })

  test('two coordinators may verify one batch with different collateral', async () => {
    const batch = createTestBatch()
    const [first, second] = [createTestSigning(wallet), createTestSigning(wallet)]
    await subject.store.insertSignings({ batch, signings: [first], now: NOW })
    const later = { ...batch, collateral: Buffer.from('{"newer":true}'), tcbStatus: 'OutOfDate' as const }
    await subject.store.insertSignings({ batch: later, signings: [second], now: NOW })
    const { rows } = await sql`
      select slug, tcb_status, encode(collateral_hash, 'hex') as collateral
      from proofs as a join signings as s on s.id = a.signing_id join verifications as v on s.verification_id = v.id
      where boot_id = ${Buffer.from(batch.bootId, 'hex')} order by v.id`.execute(subject.database.db)
    expect(rows).toEqual([
      { slug: first.slug, tcb_status: 'UpToDate', collateral: hash('sha256', batch.collateral) },
      { slug: second.slug, tcb_status: 'OutOfDate', collateral: hash('sha256', later.collateral) },
    ])
  })

  test('stores a batch’s shared data again if the database has lost it', async () => {
    const batch = createTestBatch()
    const before = createTestSigning(wallet)
    await subject.store.insertSignings({ batch, signings: [before], now: NOW })
    // Like on a standby that was promoted before it had the rows. Rows can't be deleted, so this simulates it.
    await sql`truncate collaterals, self_attestations cascade`.execute(subject.database.db)
    const after = createTestSigning(wallet)
    const signed = await subject.store.insertSignings({ batch, signings: [after], now: NOW })
    expect(signed).toEqual([toSigned(after)])
    expect(await count('collaterals')).toBe(1)
    expect(await count('self_attestations')).toBe(1)
  })

  test('rejects another quote with the number of a recorded batch, and stores nothing', async () => {
    const batch = createTestBatch()
    await subject.store.insertSignings({ batch, signings: [createTestSigning(wallet)], now: NOW })
    const signing = createTestSigning(wallet)
    const other = { ...batch, quote: Buffer.from('another quote') }
    await expect(subject.store.insertSignings({ batch: other, signings: [signing], now: NOW })).rejects.toMatchObject({
      code: 'attestation_invalid',
    })
    expect(await subject.store.findProof(signing.slug)).toBeUndefined()
  })

  test('rejects two signings with one entropy sample, and stores nothing', async () => {
    const first = createTestSigning(wallet)
    const second = createTestSigning(wallet)
    const { entropyHash } = first.statement
    const copy = { ...second, witness: first.witness, statement: { ...second.statement, entropyHash } }
    await expect(
      subject.store.insertSignings({ batch: createTestBatch(), signings: [first, copy], now: NOW }),
    ).rejects.toMatchObject({ code: 'entropy_unavailable' })
    expect(await subject.store.findProof(first.slug)).toBeUndefined()
    expect(await countJobs(first.slug)).toBe(0)
  })

  test('rejects an unknown wallet', async () => {
    const signing = createTestSigning({ ...wallet, id: '00000000-0000-4000-8000-000000000000' })
    await expect(
      subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW }),
    ).rejects.toMatchObject({ code: '23503' })
  })

  test('stores nothing if the jobs fail', async () => {
    const batch = createTestBatch()
    const signing = createTestSigning(wallet)
    const store = subject.withJobs({
      ...subject.jobs,
      insertPins: () => 'insert into logins (id) select (1 / 0)::text',
      stop: async () => {},
    })
    await expect(store.insertSignings({ batch, signings: [signing], now: NOW })).rejects.toMatchObject({
      code: '22012',
    })
    expect(await subject.store.findProof(signing.slug)).toBeUndefined()
    expect(await count('batches', `boot_id = '\\x${batch.bootId}'`)).toBe(0)
    expect(await countJobs(signing.slug)).toBe(0)
    const again = await subject.store.insertSignings({ batch, signings: [signing], now: NOW })
    expect(again).toEqual([toSigned(signing)])
  })

  test('returns nothing for an empty call', async () => {
    expect(await subject.store.insertSignings({ batch: createTestBatch(), signings: [], now: NOW })).toEqual([])
    expect(await subject.store.findSigners({ queries: [], now: NOW, idleMs: 1000 })).toEqual([])
    expect(await subject.store.findProof('unknown')).toBeUndefined()
  })

  test('a connection cut during the transaction stores nothing, and the next call works', async () => {
    const signing = createTestSigning(wallet)
    const batch = createTestBatch()
    const store = subject.withJobs({
      ...subject.jobs,
      insertPins: () =>
        'insert into logins (id) select pg_terminate_backend(pg_backend_pid())::text || pg_sleep(10)::text',
      stop: async () => {},
    })
    await expect(store.insertSignings({ batch, signings: [signing], now: NOW })).rejects.toMatchObject({
      code: 'database_unavailable',
    })
    expect(await subject.store.findProof(signing.slug)).toBeUndefined()
    expect(await subject.store.insertSignings({ batch, signings: [signing], now: NOW })).toEqual([toSigned(signing)])
  })

  test('returns stored signings even if an earlier one of other requests is unreadable', async () => {
    const database = await openDatabase(subject.options)
    const isLookup = (node: object) => JSON.stringify(node).includes('select signing_id, slug from signing_lookups')
    const db = database.db.withPlugin({
      transformQuery({ node }) {
        if (isLookup(node)) throw new Error('the connection is gone')
        return node
      },
      transformResult: async ({ result }) => result,
    })
    const broken = createStore({
      database: { ...database, db },
      jobs: await openJobs(database, { pipelineDelayMs: 1000 }),
    })
    try {
      const known = createTestSigning(wallet)
      await subject.store.insertSignings({ batch: createTestBatch(), signings: [known], now: NOW })
      const [fresh, again] = [createTestSigning(wallet), createTestSigning(wallet, known.statement.digest)]
      const answers = await broken.insertSignings({ batch: createTestBatch(), signings: [again, fresh], now: NOW })
      expect(answers).toEqual([toSigned(fresh)])
      const alone = broken.insertSignings({ batch: createTestBatch(), signings: [again], now: NOW })
      await expect(alone).rejects.toThrow()
    } finally {
      await broken.close()
    }
  })

  test('two coordinators with the same signings agree on one winner', async () => {
    const database = await openDatabase(subject.options)
    const second = createStore({ database, jobs: await openJobs(database, { pipelineDelayMs: 1000 }) })
    try {
      const digests = Array.from({ length: 30 }, () => createTestSigning(wallet).statement.digest)
      const batch = createTestBatch()
      const answers = await Promise.all(
        [subject.store, second, subject.store, second].map((store) =>
          store.insertSignings({
            batch,
            signings: digests.map((digest) => createTestSigning(wallet, digest)),
            now: NOW,
          }),
        ),
      )
      const sorted = answers.map((answer) => answer.map(({ slug }) => slug).toSorted())
      for (const answer of sorted) expect(answer).toEqual(sorted[0])
      expect(new Set(sorted[0]).size).toBe(30)
    } finally {
      await second.close()
    }
  })
})
