import type { QuoteSource } from '@countersign/evidence/core'
import {
  computeTdxReportData,
  firstPreviousBatchHash,
  fromHex,
  hashBatch,
  type OpenBatch,
  type SignedBatch,
  toHex,
} from '@countersign/protocol/core'
import type { Log } from '@countersign/service'
import { createTreeEdge } from '@countersign/service/hexTree'

/** A batch whose quote has begun. `signed` resolves to the same batch with its quote, and rejects if the quote fails. */
export type BegunBatch = OpenBatch & { signed: Promise<SignedBatch> }

/** Where a leaf is. */
export type Placement = { batch: BegunBatch; leafIndex: number }

export type Batcher = {
  /**
   * Says that so many leaves are being made: a quote that could begin meanwhile waits for them, if they are few. To be called back when they
   * were added, or when there will be none.
   */
  expect(count: number): () => void
  /** Resolves when the quote that is to cover the leaf begins. */
  add(leaf: Uint8Array): Promise<Placement>
  /** Resolves when nothing waits any more. */
  drain(): Promise<void>
}

export type BatcherParameters = {
  quoteSource: QuoteSource
  /** 16 bytes, random at each start. */
  bootId: Uint8Array
  configHash: Uint8Array
  /** Leaves that one quote may cover. */
  limit: number
  log: Log
  /** Called when the quote of a batch begins, before any caller gets the batch. */
  onBegun?(batch: BegunBatch): void
}

type Waiting = { leaf: Uint8Array; resolve(placement: Placement): void; reject(error: unknown): void }
type Expected = { count: number; arrived: Promise<void> }

/** Leaves that a quote waits for: they take some milliseconds, and would have to wait for a whole quote otherwise. */
const MAX_EXPECTED = 32

/**
 * Group commit: one quote at a time; leaves of all callers that arrive meanwhile share the next one. There is no timer: a single
 * leaf is a batch of one and does not wait, unless others are being made at that moment. The batches of one boot form a chain.
 */
export function createBatcher(parameters: BatcherParameters): Batcher {
  const { quoteSource, bootId, configHash, limit, log, onBegun } = parameters
  const queue: Waiting[] = []
  /** In the order in which they will arrive. */
  const expected = new Set<Expected>()
  let sequence = 0
  let previous = firstPreviousBatchHash()
  let running: Promise<void> | undefined

  async function run() {
    // One call adds all its leaves in one turn of the event loop.
    await Promise.resolve()
    while (queue.length > 0) {
      await untilArrived()
      const taken = queue.splice(0, limit)
      try {
        await quoteBatch(taken)
      } catch (error) {
        const reason = error instanceof Error ? error.name : ''
        log.error({ msg: 'Could not quote a batch', size: taken.length, reason })
        // Callers with a placement see the failure through `signed`.
        for (const { reject } of taken) reject(error)
      }
    }
    running = undefined
  }

  /** Those of now, as far as they are few: what comes later is for the next quote. */
  async function untilArrived() {
    let left = Math.min(MAX_EXPECTED, limit - queue.length)
    for (const { count, arrived } of [...expected]) {
      left -= count
      if (left < 0) return
      await arrived
    }
  }

  async function quoteBatch(taken: Waiting[]) {
    const leaves = taken.map(({ leaf }) => toHex(leaf))
    const tree = createTreeEdge({ size: 0, hashes: [] })
    for (const leaf of leaves) tree.append(leaf)
    const reportData = computeTdxReportData({
      treeSize: tree.size,
      root: fromHex(tree.computeRoot()),
      bootId,
      batchSequence: sequence,
      previousBatchHash: previous,
      configHash,
    })
    const open = { bootId: toHex(bootId), sequence, previous: toHex(previous), leaves }
    const signed = sign(open, reportData)
    // Callers see the rejection through their placements. There may be none.
    signed.catch(() => undefined)
    const batch = { ...open, signed }
    onBegun?.(batch)
    for (const [leafIndex, { resolve }] of taken.entries()) resolve({ batch, leafIndex })
    await signed
    sequence += 1
    previous = hashBatch(reportData)
  }

  async function sign(open: OpenBatch, reportData: Uint8Array): Promise<SignedBatch> {
    const { quote, eventLog } = await quoteSource.getQuote(reportData)
    return { ...open, quote: Buffer.from(quote).toString('hex'), ...(eventLog === undefined ? {} : { eventLog }) }
  }

  return {
    expect(count) {
      let onArrived = () => {}
      const arrived = new Promise<void>((resolve) => {
        onArrived = resolve
      })
      const one = { count, arrived }
      expected.add(one)
      return () => {
        expected.delete(one)
        onArrived()
      }
    },
    add: (leaf) =>
      new Promise((resolve, reject) => {
        queue.push({ leaf, resolve, reject })
        running ??= run()
      }),
    async drain() {
      while (running !== undefined) await running
    },
  }
}
