import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { explain } from '../../test/store/explain.ts'
import {
  createTestBatch,
  createTestRelease,
  createTestSigning,
  createTestSigningV2,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { findPins } from './findPins.ts'
import { createNodeReader } from './logTiles.ts'
import { findProof } from './proofs.ts'
import { findSigned } from './signings.ts'
import type { Wallet } from './wallets.ts'

const SIZE = 1_048_576

describe('partitions of signings', () => {
  let subject: TestStore
  let wallet: Wallet
  let partition = 0
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  const sign = async (count = 1) => {
    const signings = Array.from({ length: count }, () => createTestSigning(wallet))
    await subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
    return signings.map(({ slug }) => slug)
  }
  /** This many ids before the end of the last partition. */
  const skipTo = async (left: number) => {
    partition += 3
    await subject.query(`select setval('signings_id', ${partition * SIZE + SIZE - left - 1})`)
  }
  const list = async () => {
    const rows = await subject.query(`select relname from pg_class where relname ~ '^signings_[0-9]+$' order by oid`)
    return rows.map((row) => Number((row as { relname: string }).relname.slice('signings_'.length)))
  }
  const create = () => subject.query('select create_signing_partitions() as count')

  test('a new database has the first two, and no call creates one twice', async () => {
    expect(await list()).toEqual([0, 1])
    expect([await create(), await create()]).toEqual([[{ count: 0 }], [{ count: 0 }]])
  })

  test('signing continues without them, even across the end of one', async () => {
    await skipTo(2)
    const slugs = await sign(5)
    for (const slug of slugs) expect(await subject.store.findProof(slug)).toMatchObject({ status: 'pending_pin' })
    expect((await findPins(subject.database.db, slugs)).map((work) => work?.slug)).toEqual(slugs)
    await create()
    await subject.query(`select setval('signings_id', ${(partition + 2) * SIZE - 3})`)
    slugs.push(...(await sign(5)))
    const ofTable = `from signings where tableoid = 'signings_${partition + 1}'::regclass`
    expect(await subject.query(`select count(*)::int, max(id)::int as last ${ofTable}`)).toEqual([
      { count: 7, last: (partition + 2) * SIZE - 1 },
    ])
    const listed = await subject.store.listTransactions({ userId: wallet.userId, limit: 10, before: undefined })
    expect(listed.map(({ slug }) => slug)).toEqual(slugs.toReversed())
  })

  test('coordinators that need a missing one at the same time all continue', async () => {
    await skipTo(3)
    const slugs = (await Promise.all(Array.from({ length: 8 }, () => sign(3)))).flat()
    expect(await subject.store.findProofStates(slugs)).toHaveLength(24)
  })

  test('one is created while others read and write signings', async () => {
    await skipTo(3)
    await subject.database.db.transaction().execute(async (reading) => {
      await reading.selectFrom('signings').select('id').execute()
      expect(await create()).toEqual([{ count: 2 }])
    })
    await skipTo(3)
    const isSigning = Promise.all(Array.from({ length: 6 }, () => sign(4)))
    await create()
    expect((await isSigning).flat()).toHaveLength(24)
  })

  test('creating one fails if it waits too long for a writer', async () => {
    await skipTo(3)
    await subject.database.db.transaction().execute(async (writing) => {
      await writing.updateTable('wallets').set({ user_id: wallet.userId }).where('id', '=', wallet.id).execute()
      expect(await create()).toEqual([{ count: 0 }])
    })
    expect(await create()).toEqual([{ count: 2 }])
  })

  test('queries on an empty one also use the key, because plans are kept while it fills', async () => {
    await skipTo(3)
    await create()
    const { plans, db } = explain(subject.database.db)
    await findProof({ db: db, fetchNodes: createNodeReader(db) }, 'AAAAAAAAAAAAAAAAAAAAAA')
    await findSigned(db, [{ walletId: wallet.id, digest: `0x${'00'.repeat(32)}` }])
    await findPins(db, ['AAAAAAAAAAAAAAAAAAAAAA'])
    for (const plan of plans) {
      expect(plan).toContain(`using signings_${partition + 1}_pkey`)
      expect(plan).not.toMatch(/wallet_id_id_idx/)
    }
  })

  test('rules apply in each: a signing is neither changed nor deleted', async () => {
    await skipTo(3)
    await sign(6)
    for (const table of ['signings', `signings_${partition + 1}`]) {
      await expect(subject.query(`update ${table} set chain_id = 7`)).rejects.toMatchObject({ code: '23001' })
      await expect(subject.query(`delete from ${table}`)).rejects.toMatchObject({ code: '23001' })
    }
  })

  test('digest, commitment and sample are unique across all', async () => {
    const first = createTestSigning(wallet)
    const offChain = createTestSigningV2(wallet)
    const batch = createTestBatch({ release: createTestRelease(offChain.statement.coordinatorKey) })
    await subject.store.insertSignings({ batch, signings: [first, offChain], now: NOW })
    await skipTo(0)
    const again = createTestSigning(wallet, first.statement.digest)
    const insert = (signing: typeof first | typeof offChain) =>
      subject.store.insertSignings({ batch, signings: [signing], now: NOW })
    expect(await insert(again)).toMatchObject([{ slug: first.slug, signature: first.statement.signature }])
    expect(await insert({ ...createTestSigningV2(wallet), signed: offChain.signed })).toEqual([])
    await expect(
      insert({
        ...createTestSigning(wallet),
        witness: first.witness,
        statement: { ...createTestSigning(wallet).statement, entropyHash: first.statement.entropyHash },
      }),
    ).rejects.toMatchObject({ code: 'entropy_unavailable' })
  })

  test('signings in an archived one are not found, and not signed again', async () => {
    await skipTo(0)
    const signing = createTestSigning(wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    const name = `signings_${partition + 1}`
    await subject.query(`alter table signings detach partition ${name}`)
    expect(await subject.store.findProof(signing.slug)).toBeUndefined()
    expect(await findPins(subject.database.db, [signing.slug])).toEqual([undefined])
    const again = createTestSigning(wallet, signing.statement.digest)
    await expect(
      subject.store.insertSignings({ batch: createTestBatch(), signings: [again], now: NOW }),
    ).rejects.toThrow('neither inserted nor found')
    const [from, to] = [(partition + 1) * SIZE, (partition + 2) * SIZE]
    await subject.query(`alter table signings attach partition ${name} for values from (${from}) to (${to})`)
    expect(await subject.store.findProof(signing.slug)).toMatchObject({ slug: signing.slug })
  })
})
