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

describe('exportReceipt', () => {
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

  test('exports version 1 as the receipt, and its collateral separately', async () => {
    const { slug, work } = await insert(createTestSigning(wallet))
    const { receipt, collateral } = assembleReceipt(work)
    expect(await write(slug)).toEqual({ bytes: receipt.bytes })
    expect(await exportCollateral(subject.database.db, slug)).toEqual({ bytes: collateral.bytes })
  })

  test('exports version 2 as a CAR with the receipt as its root and every block that it names', async () => {
    const { slug, work } = await insert(createTestSigningV2(wallet))
    const exported = await write(slug)
    if ('fault' in exported) throw new Error(exported.fault)
    const { receipt, collateral, others } = assembleReceipt(work)
    const files = parseReceiptCar(exported.bytes)
    expect(toCid(files.bytes)).toBe(receipt.cid)
    const carried = [files.collateral, ...Object.values(files.blocks)].map((block) => block && toCid(block))
    expect(carried.toSorted()).toEqual([collateral, ...others].map(({ cid }) => cid).toSorted())
  })

  test('rejects frozen bytes that name blocks that the database does not have', async () => {
    const [first, second] = [await insert(createTestSigningV2(wallet)), await insert(createTestSigningV2(wallet))]
    const { bytes } = assembleReceipt(second.work).receipt
    await createPinningStore({ db: subject.database.db, jobs: subject.jobs }).freezeReceipt({ slug: first.slug, bytes })
    expect(await write(first.slug)).toEqual({ fault: expect.stringContaining("doesn't have all blocks") })
  })

  test('rejects a dropped receipt that its rows cannot rebuild', async () => {
    const [proof] = await createCompleteProofs(subject, { count: 1, now: NOW })
    const { slug = '', cid = '', bytes } = proof ?? {}
    expect(await write(slug)).toEqual({ bytes })
    await createRetentionStore(subject.database.db).dropReceipts([slug])
    expect(await write(slug)).toEqual({ fault: expect.stringContaining(`only on IPFS, as ${cid}`) })
  })

  test('reports a receipt that is too large', async () => {
    const signing = createTestSigning(wallet)
    const { slug } = await insert({
      ...signing,
      txMetadata: { ...signing.txMetadata, data: `0x${'ab'.repeat(131_072)}` },
    })
    expect(await write(slug)).toEqual({ fault: 'Could not build the receipt: receipt larger than 256 KiB.' })
  })

  test('reports an unknown proof', async () => {
    const none = { fault: 'No such proof.' }
    const slug = 'AAAAAAAAAAAAAAAAAAA_-A'
    expect([await write(slug), await exportCollateral(subject.database.db, slug)]).toEqual([none, none])
  })
})
