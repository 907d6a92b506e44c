import type { QuoteSource } from '@countersign/evidence'
import {
  computeTdxReportData,
  firstPreviousBatchHash,
  hashBatch,
  hashTree,
  type SignedBatch,
  toHex,
} from '@countersign/protocol'
import type { Log } from '@countersign/service'

/** Where a leaf is, once a quote covers it. */
export type Placement = { batch: SignedBatch; leafIndex: number }

export type Batcher = {
  /** Resolves when a quote covers the leaf; rejects when its batch got none. */
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
  /** Called for each batch in its order, before anybody has it. The next quote does not wait for it. */
  onQuoted?(batch: SignedBatch): void
}

type Waiting = { leaf: Uint8Array; resolve(placement: Placement): void; reject(error: unknown): void }

/**
 * Group commit: one quote at a time; leaves of all callers that arrive meanwhile share the next one. There is no timer: a single
 * leaf is a batch of one and does not wait. The batches of one boot form a chain.
 */
export function createBatcher(parameters: BatcherParameters): Batcher {
  const { quoteSource, bootId, configHash, limit, log, onQuoted } = parameters
  const queue: Waiting[] = []
  let sequence = 0
  let previous = firstPreviousBatchHash()
  let running: Promise<void> | undefined

  async function run() {
    // One call adds all its leaves in one turn of the event loop.
    await Promise.resolve()
    while (queue.length > 0) {
      const taken = queue.splice(0, limit)
      try {
        await quoteBatch(taken)
      } catch (error) {
        log.error({
          msg: 'Could not quote a batch',
          size: taken.length,
          reason: error instanceof Error ? error.name : '',
        })
        for (const { reject } of taken) reject(error)
      }
    }
    running = undefined
  }

  async function quoteBatch(taken: Waiting[]) {
    const leaves = taken.map(({ leaf }) => leaf)
    const reportData = computeTdxReportData({
      treeSize: leaves.length,
      root: hashTree(leaves),
      bootId,
      batchSequence: sequence,
      previousBatchHash: previous,
      configHash,
    })
    const { quote, eventLog } = await quoteSource.getQuote(reportData)
    const batch: SignedBatch = {
      bootId: toHex(bootId),
      sequence,
      previous: toHex(previous),
      leaves: leaves.map(toHex),
      quote: Buffer.from(quote).toString('hex'),
      ...(eventLog === undefined ? {} : { eventLog }),
    }
    sequence += 1
    previous = hashBatch(reportData)
    onQuoted?.(batch)
    for (const [leafIndex, { resolve }] of taken.entries()) {
      resolve({ batch, leafIndex })
    }
  }

  return {
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
