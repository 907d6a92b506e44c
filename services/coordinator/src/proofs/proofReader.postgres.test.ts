import type { ProofPayload } from '@countersign/protocol'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pinRows } from '../../test/store/rows.ts'
import {
  createTestBatch,
  createTestSigning,
  createTestWallet,
  NOW,
  openStore,
  randomHex,
  startTestStore,
  type TestStore,
} from '../../test/store/store.ts'
import { createPublicationStore, type PublicationStore } from '../store/publications.ts'
import { createProofReader } from './proofReader.ts'

const CHAIN = 84_532

describe('two coordinators read proofs while a worker changes them', () => {
  let subject: TestStore
  let publications: PublicationStore
  const closes: (() => Promise<void>)[] = []
  beforeAll(async () => {
    subject = await startTestStore()
    publications = createPublicationStore({ db: subject.database.db, jobs: subject.jobs })
  })
  afterAll(async () => {
    for (const close of closes) await close()
    await subject.stop()
  })

  /** With separate connections and an empty cache, like after a start. */
  async function start() {
    const store = await openStore({ ...subject.options, poolSize: 2 })
    closes.push(() => store.close())
    const reader = createProofReader({ store, ipfsGatewayUrl: undefined })
    return async (slug: string) => {
      const { latin1, isFinal } = await reader.read(slug)
      const { status, onchainBlockNumber } = JSON.parse(latin1) as ProofPayload
      return { status, onchainBlockNumber, isFinal }
    }
  }

  async function publish(count: number) {
    const wallet = await createTestWallet(subject.store)
    const signings = Array.from({ length: count }, () => createTestSigning(wallet))
    await subject.store.insertSignings({ batch: createTestBatch(), signings, now: NOW })
    const slugs = signings.map(({ slug }) => slug)
    await pinRows(subject.database.db, slugs, { now: NOW })
    const account = `0x${randomHex(20)}` as const
    await publications.claim({
      chainId: CHAIN,
      account,
      nonce: 0,
      contract: `0x${randomHex(20)}`,
      calldata: '0x',
      slugs,
      transaction: {
        hash: `0x${randomHex(32)}`,
        raw: `0x${randomHex(32)}`,
        kind: 'publish',
        gas: 1n,
        maxFeePerGas: 1n,
        maxPriorityFeePerGas: 1n,
      },
      now: NOW,
    })
    const open = (await publications.findOpen(CHAIN)).find((one) => one.account === account)
    return { id: open?.id ?? 0, slugs, txHash: `0x${randomHex(32)}` as const }
  }

  test('both show a moved event immediately and after a restart; final proofs stay', async () => {
    const [one, two] = [await start(), await start()]
    const { id, slugs, txHash } = await publish(1)
    const slug = slugs[0] ?? ''
    const expectAll = async (expected: Awaited<ReturnType<typeof one>>) => {
      for (const read of [one, two, await start()]) {
        expect([await read(slug), await read(slug)]).toEqual([expected, expected])
      }
    }
    await expectAll({ status: 'pending_onchain', onchainBlockNumber: null, isFinal: false })
    await publications.confirm({ id, txHash, blockNumber: 4 })
    await expectAll({ status: 'complete', onchainBlockNumber: 4, isFinal: false })
    for (const blockNumber of [5, 4, 9]) {
      await publications.move({ id, txHash, blockNumber })
      await expectAll({ status: 'complete', onchainBlockNumber: blockNumber, isFinal: false })
    }
    await publications.finish({ id })
    expect(await publications.move({ id, txHash, blockNumber: 10 })).toBe(false)
    await expectAll({ status: 'complete', onchainBlockNumber: 9, isFinal: true })
  })

  test('reads concurrent with a worker never return a state from before they started', async () => {
    const readers = [await start(), await start()]
    const { id, slugs, txHash } = await publish(20)
    await publications.confirm({ id, txHash, blockNumber: 0 })
    let moved = 0
    let isOver = false
    const stale: unknown[] = []
    const reading = readers.flatMap((read) =>
      slugs.map(async (slug) => {
        let last = 0
        while (!isOver) {
          const committed = moved
          const { onchainBlockNumber } = await read(slug)
          const shown = onchainBlockNumber ?? -1
          if (shown < committed || shown < last) stale.push({ slug, shown, committed, last })
          last = shown
        }
      }),
    )
    for (let blockNumber = 1; blockNumber <= 40; blockNumber++) {
      await publications.move({ id, txHash, blockNumber })
      moved = blockNumber
    }
    isOver = true
    await Promise.all(reading)
    expect(stale).toEqual([])
    await publications.finish({ id })
    for (const read of readers) {
      for (const slug of slugs) expect(await read(slug)).toMatchObject({ onchainBlockNumber: 40, isFinal: true })
    }
  })
})
