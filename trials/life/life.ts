import { startFakeChain } from '@countersign/testing'
import { createFakeClock } from '../../services/coordinator/src/ports.fake.ts'
import { createTestBatch, createTestWallet, startTestStore } from '../../services/coordinator/src/store/store.fake.ts'
import { clearProofs } from '../../services/coordinator/test/proofRows.ts'
import type { LifeCommand } from './commands.ts'
import { type LifeCounts, runSequence } from './runSequence.ts'

const FINALITY = 8

export type Life = {
  /** Runs one sequence on empty tables and a chain of its own, and heals it. Throws where an invariant does not hold. */
  run(commands: readonly LifeCommand[], counts?: LifeCounts): Promise<void>
  stop(): Promise<void>
}

/** A database for any number of sequences, one after the other. */
export async function openLife(): Promise<Life> {
  const subject = await startTestStore()
  const wallets = [await createTestWallet(subject.store), await createTestWallet(subject.store)]
  const batches = ['{"collateral":1}', '{"collateral":2}'].map((collateral, sequence) =>
    createTestBatch({ sequence, quote: Buffer.alloc(64, sequence), collateral: Buffer.from(collateral) }),
  )
  return {
    async run(commands, counts = {}) {
      await clearProofs(subject)
      const clock = createFakeClock()
      const node = await startFakeChain({ now: clock.now, finalityDepth: FINALITY })
      try {
        node.mine(FINALITY)
        await runSequence({ subject, wallets, batches, node, clock, counts }, commands)
      } finally {
        await node.stop()
      }
    },
    stop: () => subject.stop(),
  }
}
