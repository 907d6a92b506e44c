import { type Hex, type Signed, toEventHash } from '@countersign/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createTestAuthorization,
  createTestBatch,
  createTestRelease,
  createTestSigning,
  createTestSigningV2,
  createTestWallet,
  NOW,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { assembleReceipt } from '../publish/assembleReceipt.ts'
import type { SigningBatch } from './batches.ts'
import { createPinningStore } from './pinning.ts'
import type { Signing } from './signings.ts'
import type { Wallet } from './wallets.ts'

describe('signings of version 2', () => {
  let subject: TestStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  const insert = (signings: Signing[], batch: SigningBatch = createTestBatch()) => {
    const release = createTestRelease(signings[0]?.statement.coordinatorKey ?? '')
    return subject.store.insertSignings({ batch: { release, ...batch }, signings, now: NOW })
  }
  const find = (slug: string) => createPinningStore({ db: subject.database.db, jobs: subject.jobs }).findPin(slug)

  test('stores an off-chain signing as its commitment and finds it with its kind', async () => {
    const signing = createTestSigningV2(wallet)
    expect(await insert([signing])).toEqual([
      { walletId: wallet.id, digest: null, signature: null, slug: signing.slug },
    ])
    const txHash = toEventHash(signing.signed)
    expect(await subject.store.findProof(signing.slug)).toMatchObject({ kind: 'off-chain', txHash, chainId: 0 })
    const [newest] = await subject.store.listTransactions({ userId: wallet.userId, limit: 1, before: undefined })
    const listed = { kind: 'off-chain', txHash, chainId: 0, slug: signing.slug, status: 'pending_pin', createdAt: NOW }
    expect(newest).toEqual({ id: expect.any(String), ...listed })
  })

  test('finds an authorization by its digest, and a second one returns the first', async () => {
    const signed = createTestAuthorization()
    const [first, second] = [createTestSigningV2(wallet, signed), createTestSigningV2(wallet, signed)]
    const stored = await insert([first])
    expect(stored).toMatchObject([{ digest: (signed.subject as { digest: Hex }).digest, slug: first.slug }])
    expect(await insert([second])).toEqual(stored)
    expect(await subject.store.findProof(first.slug)).toMatchObject({ kind: 'authorization', chainId: 5 })
    const [newest] = await subject.store.listTransactions({ userId: wallet.userId, limit: 1, before: undefined })
    expect(newest).toMatchObject({ kind: 'authorization', slug: first.slug, implementation: `0x${'22'.repeat(20)}` })
    expect(Object.keys(newest ?? {})).not.toContain('data')
  })

  test('lists a transaction like one of version 1', async () => {
    const { txMetadata, statement } = createTestSigning(wallet)
    const { digest, signature, txHash, signedAt } = statement
    const to = txMetadata.to.toLowerCase() as Hex
    const subjectOf = { ...txMetadata, to, from: wallet.address, txHash, digestSigned: digest, signature, signedAt }
    await insert([createTestSigningV2(wallet, { kind: 'transaction', subject: subjectOf })])
    const [newest] = await subject.store.listTransactions({ userId: wallet.userId, limit: 1, before: undefined })
    const { value, data, nonce } = txMetadata
    expect(newest).toMatchObject({ txHash, to, value, data, nonce })
    expect(newest).not.toHaveProperty('kind')
  })

  test('kinds and versions share one transaction, and each is returned', async () => {
    const batch = createTestBatch()
    const { coordinatorKey } = createTestSigning(wallet).statement
    const news = [createTestSigningV2(wallet), createTestSigningV2(wallet, createTestAuthorization())]
    const released = news.map((signing) => ({ ...signing, statement: { ...signing.statement, coordinatorKey } }))
    const signings = [...released, createTestSigning(wallet)]
    const stored = await insert(signings, batch)
    expect(stored.map(({ slug }) => slug).sort()).toEqual(signings.map(({ slug }) => slug).sort())
    expect((await find(signings[2]?.slug ?? ''))?.records.version).toBe(1)
    expect((await find(signings[1]?.slug ?? ''))?.records.version).toBe(2)
  })

  test('omits a commitment that the wallet has already, and stores the others of the batch', async () => {
    const signing = createTestSigningV2(wallet)
    await insert([signing])
    const { coordinatorKey } = signing.statement
    const [again, twice, twiceAgain, good, delegation] = [
      ...[signing.signed, ...Array(2).fill({ kind: 'off-chain', subject: { commitment: randomHex(32) } }), undefined],
      createTestAuthorization(),
    ].map((signed?: Signed) => {
      const next = createTestSigningV2(wallet, signed)
      return { ...next, statement: { ...next.statement, coordinatorKey } }
    }) as [Signing, Signing, Signing, Signing, Signing]
    const stored = await insert([again, twice, good, twiceAgain, delegation])
    expect(stored.map(({ slug }) => slug).sort()).toEqual([twice, good, delegation].map(({ slug }) => slug).sort())
    expect(await find(again.slug)).toBeUndefined()
    expect(await insert([again])).toEqual([])
    const other = await createTestWallet(subject.store)
    await expect(insert([{ ...createTestSigningV2(other), signed: signing.signed }])).resolves.toHaveLength(1)
  })

  test('keeps a coordinator’s first release of a batch, even with 20 concurrent calls', async () => {
    const batch = createTestBatch()
    const coordinatorKey = randomHex(32)
    const signings = Array.from({ length: 20 }, () => {
      const signing = createTestSigningV2(wallet)
      return { ...signing, statement: { ...signing.statement, coordinatorKey } }
    })
    await Promise.all(
      signings.map((signing, index) => {
        const collateral = Buffer.from(`{"collateral":${index % 3}}`)
        return insert([signing], { ...batch, collateral, release: createTestRelease(coordinatorKey) })
      }),
    )
    const works = await Promise.all(signings.map(({ slug }) => find(slug)))
    const shared = works.map((work) => {
      if (work?.records.version !== 2) throw new Error('of another version')
      const { signatures, coordinator, collateral } = work.records.release
      return JSON.stringify([signatures, coordinator, collateral].map((one) => JSON.stringify(one)))
    })
    expect(new Set(shared).size).toBe(1)
    expect(await subject.query(`select 1 from releases where boot_id = '\\x${batch.bootId}'`)).toHaveLength(1)
  })

  test('two coordinators that share a batch have a release each', async () => {
    const batch = createTestBatch()
    const [one, two] = [createTestSigningV2(wallet), createTestSigningV2(wallet)]
    await insert([one], batch)
    await insert([two], batch)
    const blocks = await Promise.all(
      [one, two].map(async ({ slug }) => {
        const work = await find(slug)
        if (work === undefined) throw new Error('no such proof')
        return assembleReceipt(work).others.map(({ cid }) => cid)
      }),
    )
    const [first, second] = blocks as [string[], string[]]
    expect(first[0]).toBe(second[0])
    expect(first[2]).not.toBe(second[2])
  })

  test('the same rows give the same blocks each time', async () => {
    const signing = createTestSigningV2(wallet)
    await insert([signing])
    const made = await Promise.all([find(signing.slug), find(signing.slug)])
    const [one, two] = made.map((work) => work && assembleReceipt(work))
    expect(one).toEqual(two)
    expect(one?.others).toHaveLength(3)
  })

  test('assembles nothing from a row without its release', async () => {
    const signing = createTestSigningV2(wallet)
    await subject.store.insertSignings({ batch: createTestBatch(), signings: [signing], now: NOW })
    await expect(find(signing.slug)).rejects.toThrow()
  })

  test('many signings may share a beacon’s sample; other samples are used once', async () => {
    const round = {
      kind: 'drand' as const,
      source: 'drand/quicknet',
      chainHash: randomHex(32),
      valueHex: randomHex(32),
      signatureHex: randomHex(48),
      publicKey: randomHex(96),
      timestamp: new Date(NOW).toISOString(),
      sequence: 9,
    }
    const shared = [createTestSigningV2(wallet), createTestSigningV2(wallet)].map((one) => ({ ...one, witness: round }))
    expect(await insert(shared)).toHaveLength(2)
    const { witness } = createTestSigningV2(wallet)
    await insert([{ ...createTestSigningV2(wallet), witness }])
    await expect(insert([{ ...createTestSigningV2(wallet), witness }])).rejects.toMatchObject({
      code: 'entropy_unavailable',
    })
  })

  describe('the database rejects', () => {
    const hash = 'ab'.repeat(32)
    const [digest, signature] = [`'\\x${hash}'`, `'\\x${'11'.repeat(65)}'`]
    const add = (values: string) =>
      subject.query(`insert into signings (id, wallet_id, verification_id, version, created_at, facts, kind, digest, signature, tx_hash,
          chain_id, data)
        select nextval('signings_id'), '${wallet.id}', max(id), 2, now(), '', ${values} from verifications`)
    test.each([
      ['a digest', `'off-chain', ${digest}, null, '\\x${hash}', 0, null`],
      ['a signature', `'off-chain', null, ${signature}, '\\x${hash}', 0, null`],
      ['a chain', `'off-chain', null, null, '\\x${hash}', 1, null`],
      ['data', `'off-chain', null, null, '\\x${hash}', 0, ''`],
      ['an unknown kind', `'message', null, null, '\\x${hash}', 0, null`],
    ])('an off-chain row with %s', async (_, values) => {
      await expect(add(values)).rejects.toThrow('signings_kind')
    })

    test.each([
      ['no digest', `'transaction', null, ${signature}, '\\x${hash}', 1, ''`],
      ['no signature', `'transaction', ${digest}, null, '\\x${hash}', 1, ''`],
      ['no data', `'transaction', ${digest}, ${signature}, '\\x${hash}', 1, null`],
      ['chain 0', `'authorization', ${digest}, ${signature}, '\\x${hash}', 0, null`],
    ])('a public row with %s', async (_, values) => {
      await expect(add(values)).rejects.toThrow('signings_kind')
    })

    test('changing or deleting a release, a coordinator’s block or a version', async () => {
      const signing = createTestSigningV2(wallet)
      await insert([signing])
      for (const table of ['releases', 'coordinator_blocks']) {
        await expect(subject.query(`delete from ${table}`)).rejects.toThrow('immutable')
      }
      await expect(subject.query(`update releases set settings = '{}'`)).rejects.toThrow('immutable')
      await expect(
        subject.query(`update signings set version = 1, release = '\\x${'00'.repeat(64)}'
          where id = (select signing_id from proofs where slug = '${signing.slug}')`),
      ).rejects.toThrow('immutable')
    })
  })
})
