import { median } from '@countersign/testing/stack'
import type { openStores } from '../../../services/coordinator/src/store/openStore.ts'
import { createTestWitness } from '../../../services/coordinator/src/store/store.fake.ts'
import { HEAVY_USER } from './fill.ts'

type Stores = Awaited<ReturnType<typeof openStores>>

const CHAIN_ID = 84_532

/** The statements that the service runs periodically, whatever the load: by name, with the store's own code. */
const statements: Readonly<Record<string, (stores: Stores) => Promise<unknown>>> = {
  'sweep for proofs without a job (every 10 s)': ({ pipeline }) => pipeline.enqueueMissing({ now: Date.now() }),
  'open proofs (metrics)': ({ pipeline }) => pipeline.countOpenProofs(),
  'proofs due for publication': ({ pipeline }) => pipeline.publications.findDue(),
  'proofs overdue for publication': ({ pipeline }) => pipeline.publications.failOverdue({ pinnedBefore: 0 }),
  'publications that are not final': ({ pipeline }) => pipeline.publications.findOpen(CHAIN_ID),
  'next nonce of the publisher': ({ pipeline }) =>
    pipeline.publications.findNextNonce({ chainId: CHAIN_ID, account: `0x${'44'.repeat(20)}` }),
  'claim of an entropy sample, old ones pruned': ({ store }) => store.claimSamples([createTestWitness()], Date.now()),
  'sign-in begun long ago, expired ones deleted': ({ store }) =>
    store.takeLogin({ id: 'none', stateHash: '00'.repeat(32), now: Date.now() }),
  'newest transactions of a wallet with 1 % of all proofs': ({ store }) =>
    store.listTransactions({ userId: HEAVY_USER, limit: 21, before: undefined }),
  'older transactions of that wallet': ({ store }) =>
    store.listTransactions({ userId: HEAVY_USER, limit: 21, before: '1005000' }),
}

export type Timed = { name: string; smallMs: number; largeMs: number; ratio: number }

/** The first reads pages that a running service has at hand. */
const WARM = 2
const REPEATS = 15

/** Both databases in turns; the medians, and the median of the ratios within each turn. */
export async function timePeriodic(small: Stores, large: Stores): Promise<Timed[]> {
  const timed: Timed[] = []
  for (const [name, run] of Object.entries(statements)) {
    const turns: { small: number; large: number }[] = []
    for (let turn = 0; turn < WARM + REPEATS; turn++) {
      turns.push({ small: await time(() => run(small)), large: await time(() => run(large)) })
    }
    const counted = turns.slice(WARM)
    timed.push({
      name,
      smallMs: median(counted.map((turn) => turn.small)),
      largeMs: median(counted.map((turn) => turn.large)),
      ratio: median(counted.map((turn) => turn.large / turn.small)),
    })
  }
  return timed
}

async function time(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return performance.now() - start
}
