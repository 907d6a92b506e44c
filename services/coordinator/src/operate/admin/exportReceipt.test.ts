import { parseReceiptCar, toCid } from '@countersign/receipt'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createCompleteProofs } from '../../../test/store/finalProofs.ts'
import {
  createTestBatch,
  createTestRelease,
  createTestSigning,
  createTestSigningV2,
  createTestWallet,
  NOW,
  startTestStore,
  type TestStore,
} from '../../../test/store/store.ts'
import { assembleReceipt } from '../../publish/assembleReceipt.ts'
import { findPins } from '../../store/findPins.ts'
import { createPinningStore } from '../../store/pinning.ts'
import { createRetentionStore } from '../../store/retention.ts'
import type { Signing } from '../../store/signings.ts'
import type { Wallet } from '../../store/wallets.ts'
import { exportCollateral, exportReceipt } from './exportReceipt.ts'

describe('a receipt as a file', () => {
  let subject: TestStore
  let wallet: Wallet
  beforeAll(async () => {
    subject = await startTestStore()
    wallet = await createTestWallet(subject.store)
  })
  afterAll(() => subject.stop())

  const write = (slug: string) => exportReceipt(subject.database.db, slug)
  async function insert(signing: Signing) {
    const release = createTestRelease(signing.statement.coordinatorKey)
    await subject.store.insertSignings({ batch: { ...createTestBatch(), release }, signings: [signing], now: NOW })
    const [work] = await findPins(subject.database.db, [signing.slug])
    if (work === undefined) throw new Error('no such proof')
    return { slug: signing.slug, work }
  }

  test('of version 1 it is the receipt, and its collateral is another', async () => {
    const { slug, work } = await insert(createTestSigning(wallet))
    const { receipt, collateral } = assembleReceipt(work)
    expect(await write(slug)).toEqual({ bytes: receipt.bytes })
    expect(await exportCollateral(subject.database.db, slug)).toEqual({ bytes: collateral.bytes })
  })

  test('of version 2 it is a CAR with the receipt as its root and every block that it names', async () => {
    const { slug, work } = await insert(createTestSigningV2(wallet))
    const exported = await write(slug)
    if ('fault' in exported) throw new Error(exported.fault)
    const { receipt, collateral, others } = assembleReceipt(work)
    const files = parseReceiptCar(exported.bytes)
    expect(toCid(files.bytes)).toBe(receipt.cid)
    const carried = [files.collateral, ...Object.values(files.blocks)].map((block) => block && toCid(block))
    expect(carried.toSorted()).toEqual([collateral, ...others].map(({ cid }) => cid).toSorted())
  })

  test('frozen bytes that name other blocks than the rows give are not written', async () => {
    const [first, second] = [await insert(createTestSigningV2(wallet)), await insert(createTestSigningV2(wallet))]
    const { bytes } = assembleReceipt(second.work).receipt
    await createPinningStore({ db: subject.database.db, jobs: subject.jobs }).freezeReceipt({ slug: first.slug, bytes })
    expect(await write(first.slug)).toEqual({ fault: expect.stringContaining('do not give all blocks') })
  })

  test('a receipt that left the database and that its rows do not give is not written', async () => {
    const [proof] = await createCompleteProofs(subject, { count: 1, now: NOW })
    const { slug = '', cid = '', bytes } = proof ?? {}
    expect(await write(slug)).toEqual({ bytes })
    await createRetentionStore(subject.database.db).dropReceipts([slug])
    expect(await write(slug)).toEqual({ fault: expect.stringContaining(`on IPFS alone, as ${cid}`) })
  })

  test('one that is too large is said to be, and is no fault of the database', async () => {
    const signing = createTestSigning(wallet)
    const { slug } = await insert({
      ...signing,
      txMetadata: { ...signing.txMetadata, data: `0x${'ab'.repeat(131_072)}` },
    })
    expect(await write(slug)).toEqual({ fault: 'The receipt cannot be made: receipt larger than 256 KiB.' })
  })

  test('of no proof there is none', async () => {
    const none = { fault: 'There is no such proof.' }
    const slug = 'AAAAAAAAAAAAAAAAAAA_-A'
    expect([await write(slug), await exportCollateral(subject.database.db, slug)]).toEqual([none, none])
  })
})
