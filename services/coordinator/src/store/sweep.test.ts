import { hash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createFakeLog } from '../../test/ports.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { openJobs } from './jobs.ts'
import { createPinningStore } from './pinning.ts'
import { enqueueMissing } from './sweep.ts'
import type { Tables } from './tables.ts'
import type { Wallet } from './wallets.ts'

describe('finished jobs', () => {
  let subject: TestStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  const setState = (slug: string, state: string) =>
    sql`update pgboss.job set state = ${state}::pgboss.job_state where data -> 'slugs' ? ${slug}`.execute(
      subject.database.db,
    )

  test.each([
    ['created', 0],
    ['retry', 0],
    ['active', 0],
    ['completed', 1],
    ['cancelled', 1],
    ['failed', 1],
  ])('a proof whose job is %s gets %i more', async (state, pins) => {
    const { store, database, jobs } = subject
    const signing = createTestSigning(wallet)
    await store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW - 30_000 })
    await setState(signing.slug, state)
    expect(await enqueueMissing({ db: database.db, jobs }, { now: NOW })).toMatchObject({ pins })
  })

  test('jobs without a proof hide none; missing jobs are written like those of a commit', async () => {
    const { store, database, jobs } = subject
    const signings = Array.from({ length: 20 }, () => createTestSigning(wallet))
    await store.insertSignings({ batch: createTestBatch(), signings, now: NOW - 30_000 })
    const slugs = signings.map(({ slug }) => slug)
    const isOurs = sql`exists (select from jsonb_array_elements_text(data -> 'slugs') as slug where slug = any(${slugs}::text[]))`
    await sql`delete from pgboss.job where jsonb_typeof(data -> 'slugs') = 'array' and ${isOurs}`.execute(database.db)
    const broken = [null, '{}', '7', '[]', '{"slugs":null}', '{"slugs":7}', '{"slugs":[null,{}]}']
    for (const data of broken) {
      await sql`insert into pgboss.job (name, data, policy) values ('pin', ${data}::jsonb, 'standard')`.execute(
        database.db,
      )
    }
    expect(await enqueueMissing({ db: database.db, jobs }, { now: NOW })).toMatchObject({ pins: 20 })
    const { rows } = await sql<{ slugs: string[] }>`
      select data -> 'slugs' as slugs from pgboss.job
      where jsonb_typeof(data -> 'slugs') = 'array' and ${isOurs}`.execute(database.db)
    expect(rows.map((row) => row.slugs.length).toSorted((left, right) => right - left)).toEqual([8, 8, 4])
    expect(rows.flatMap((row) => row.slugs).toSorted()).toEqual(slugs.toSorted())
    expect(await enqueueMissing({ db: database.db, jobs }, { now: NOW })).toMatchObject({ pins: 0 })
  })

  test.each([
    ['created', 0],
    ['active', 0],
    ['completed', 1],
    ['failed', 1],
  ])('an unpinned policy whose job is %s gets %i more, and none once it is pinned', async (state, policies) => {
    const { store, database, jobs } = subject
    const sweep = (now = NOW) => enqueueMissing({ db: database.db, jobs }, { now })
    const text = `{"rules":"${state}"}`
    const policy = { hash: hash('sha256', text), text }
    const vault = { userId: wallet.userId, address: `0x${randomHex(20)}`, kmsKeyId: randomHex(16) } as const
    await store.createVault({ ...vault, policy, limit: 100, now: NOW - 30_000 })
    await sql`update pgboss.job set state = ${state}::pgboss.job_state where data ->> 'hash' = ${policy.hash}`.execute(
      database.db,
    )
    // Younger than the maximum delay of a job.
    expect(await sweep(NOW - 25_000)).toMatchObject({ policies: 0 })
    expect(await sweep()).toMatchObject({ policies })
    expect(await sweep()).toMatchObject({ policies: 0 })
    await sql`delete from pgboss.job where data ->> 'hash' = ${policy.hash}`.execute(database.db)
    await createPinningStore({ db: database.db, jobs }).completePolicy({ hash: policy.hash, now: NOW })
    expect(await sweep()).toMatchObject({ policies: 0 })
  })

  test('the sweep does not read finished jobs', async () => {
    const { db } = subject.database
    await sql`
      insert into pgboss.job (name, data, state, policy, completed_on)
      select 'pin', jsonb_build_object('slugs', jsonb_build_array(gen_random_uuid())), 'completed', 'standard', now() from generate_series(1, 5000)`.execute(
      db,
    )
    await sql`analyze`.execute(db)
    const plan = await explainFirst(db, (explaining) =>
      enqueueMissing({ db: explaining, jobs: subject.jobs }, { now: NOW }),
    )
    // Waiting and running ones.
    expect(plan).toMatch(/Index Scan using job_common_i11 /)
    expect(plan).toMatch(/Index Scan using job_common_name_idx /)
    expect(plan).not.toMatch(/job_common_pkey|Seq Scan/)
  })

  test('the sweep does not compare each proof with each waiting job', async () => {
    const { db } = subject.database
    await sql`
      insert into pgboss.job (name, data, policy)
      select 'pin', jsonb_build_object('slugs', jsonb_build_array(gen_random_uuid(), gen_random_uuid())), 'standard'
      from generate_series(1, 5000)`.execute(db)
    await sql`analyze`.execute(db)
    const plan = await explainFirst(db, (explaining) =>
      enqueueMissing({ db: explaining, jobs: subject.jobs }, { now: NOW }),
    )
    expect(plan).toMatch(/hashed SubPlan/)
  })

  test('finished jobs are kept for minutes, and active ones have an index', async () => {
    const names = ['confirm', 'pin', 'policy', 'publish']
    expect(
      await subject.query(
        `select name, deletion_seconds from pgboss.queue where name in ('${names.join("','")}') order by 1`,
      ),
    ).toEqual(names.map((name) => ({ name, deletion_seconds: 600 })))
    expect(await subject.query(`select to_regclass('pgboss.job_active')::text as found`)).toEqual([
      { found: 'pgboss.job_active' },
    ])
  })

  test('creating that index at the start blocks writers of jobs only briefly', async () => {
    const { database } = subject
    const log = createFakeLog()
    const start = async () => (await openJobs(database, { pipelineDelayMs: 1000, log })).stop()
    const findIndex = () => subject.query(`select to_regclass('pgboss.job_active')::text as found`)
    await sql`drop index pgboss.job_active`.execute(database.db)
    await database.db.transaction().execute(async (transaction) => {
      await sql`lock table pgboss.job in row exclusive mode`.execute(transaction)
      await start()
    })
    expect(log.lines).toMatchObject([{ level: 'warn', code: '55P03' }])
    expect(await findIndex()).toEqual([{ found: null }])
    await start()
    expect(await findIndex()).toEqual([{ found: 'pgboss.job_active' }])
  })
})

/** The plan of the first statement, which gets an empty result. */
async function explainFirst(db: Kysely<Tables>, run: (db: Kysely<Tables>) => Promise<unknown>): Promise<string> {
  const plans: string[] = []
  const explaining = db.withPlugin({
    transformQuery({ node }) {
      if (node.kind !== 'RawNode') return node
      return { ...node, sqlFragments: [`explain ${node.sqlFragments[0]}`, ...node.sqlFragments.slice(1)] }
    },
    async transformResult({ result }) {
      if (result.rows.length > 0) plans.push(result.rows.map((row) => row['QUERY PLAN']).join('\n'))
      return { ...result, rows: [] }
    },
  })
  await run(explaining)
  return plans[0] ?? ''
}
