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
export type StartedBatch = OpenBatch & { signed: Promise<SignedBatch> }

/** The place of a leaf. */
export type Placement = { batch: StartedBatch; leafIndex: number }

export type Batcher = {
  /**
   * Announces leaves in progress: if they are few, a quote that could begin waits for them. Call the returned function when they were added,
   * or won't be.
   */
  expect(count: number): () => void
  /** Resolves when the quote that covers the leaf begins. */
  add(leaf: Uint8Array): Promise<Placement>
  /** Resolves when no leaf is waiting. */
  drain(): Promise<void>
}

export type BatcherParameters = {
  quoteSource: QuoteSource
  /** 16 bytes, random at each start. */
  bootId: Uint8Array
  configHash: Uint8Array
  /** The most leaves under one quote. */
  limit: number
  log: Log
  /** Called when the quote of a batch begins, before any caller gets the batch. */
  onStart?(batch: StartedBatch): void
}

type Waiting = { leaf: Uint8Array; resolve(placement: Placement): void; reject(error: unknown): void }
type Expected = { count: number; arrived: Promise<void> }

/** The most leaves that a quote waits for. They take milliseconds, but would otherwise wait for a whole quote. */
const MAX_EXPECTED = 32

/**
 * Group commit: one quote at a time, and all leaves that arrive meanwhile share the next one. There is no timer: a single leaf doesn't wait,
 * unless others are announced at that moment. The batches of one boot form a chain.
 */
export function createBatcher(parameters: BatcherParameters): Batcher {
  const { quoteSource, bootId, configHash, limit, log, onStart: onBegun } = parameters
  const queue: Waiting[] = []
  /** In order of arrival. */
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

  /** Waits for the leaves announced now, if they are few. Later ones are for the next quote. */
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
