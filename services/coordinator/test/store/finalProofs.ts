import { randomBytes } from 'node:crypto'
import { toCid } from '@countersign/receipt'
import { assembleReceipt } from '../../src/publish/assembleReceipt.ts'
import { findPins } from '../../src/store/findPins.ts'
import { createPublicationStore } from '../../src/store/publications.ts'
import { pinRows } from './rows.ts'
import { createTestBatch, createTestSigning, createTestWallet, randomHex, type TestStore } from './store.ts'

const CHAIN = 84_532

export type CompleteTestProof = { slug: string; cid: string; bytes: Uint8Array<ArrayBuffer>; userId: string }

/** Proofs with separate receipts, published together and final by default. On request the receipts match their rows. */
export async function createCompleteProofs(
  { store, database, jobs }: Pick<TestStore, 'store' | 'database' | 'jobs'>,
  parameters: { count: number; now: number; isFinal?: boolean; length?: number; isAssembled?: boolean },
): Promise<CompleteTestProof[]> {
  const { count, now, isFinal = true, length = 4_000, isAssembled = false } = parameters
  const wallet = await createTestWallet(store)
  const signings = Array.from({ length: count }, () => createTestSigning(wallet))
  await store.insertSignings({ batch: createTestBatch(), signings, now })
  const slugs = signings.map(({ slug }) => slug)
  const works = isAssembled ? await findPins(database.db, slugs) : []
  const proofs = slugs.map((slug, index) => {
    const work = works[index]
    const bytes =
      work === undefined
        ? new Uint8Array(Buffer.from(JSON.stringify({ version: randomBytes(length / 2).toString('hex') })))
        : assembleReceipt(work).receipt.bytes
    return { slug, bytes, cid: toCid(bytes), userId: wallet.userId }
  })
  for (const { slug, bytes, cid } of proofs) await pinRows(database.db, [slug], { bytes, toCid: () => cid, now })
  const publications = createPublicationStore({ db: database.db, jobs })
  const account = `0x${randomHex(20)}` as const
  const hash = `0x${randomHex(32)}` as const
  await publications.claim({
    chainId: CHAIN,
    account,
    nonce: 0,
    contract: `0x${randomHex(20)}`,
    calldata: '0x',
    slugs,
    transaction: { hash, raw: '0x00', kind: 'publish', gas: 1n, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n },
    now,
  })
  const id = (await publications.findOpen(CHAIN)).find((one) => one.account === account)?.id ?? 0
  await publications.confirm({ id, txHash: hash, blockNumber: 7 })
  if (isFinal) await publications.finish({ id })
  return proofs
}
