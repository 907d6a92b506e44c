import { startFakeChain } from '@countersign/testing'
import fc from 'fast-check'
import { createFakeClock } from '../../services/coordinator/test/ports.ts'
import { clearProofs } from '../../services/coordinator/test/proofRows.ts'
import { createTestBatch, createTestWallet, startTestStore } from '../../services/coordinator/test/store/store.ts'
import { count, flag, type Outcome, type Trial, type TrialDeps, type Values } from '../trial.ts'
import { FINALITY } from './anchors.ts'
import { createLifeCommands, describeLife, type LifeCommand, type Mode } from './commands.ts'
import { type LifeCounts, runSequence } from './runSequence.ts'

const PROGRESS = 50

export type Life = {
  /** Runs a sequence on empty tables and a new chain, then repairs all faults. Throws if an invariant doesn't hold. */
  run(commands: readonly LifeCommand[], counts?: LifeCounts): Promise<void>
  stop(): Promise<void>
}

/** Opens a database for any number of sequences, run one after the other. `form`: what workers publish first. */
export async function openLife(form: Mode = 'events'): Promise<Life> {
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
        await runSequence({ subject, wallets, batches, node, clock, counts, form }, commands)
      } finally {
        await node.stop()
      }
    },
    stop: () => subject.stop(),
  }
}

const options = {
  runs: count(1_000, 'sequences', { least: 0 }),
  commands: count(50, 'commands in each', { least: 0 }),
  checkpoints: flag('workers publish checkpoints of logs, and some switch between them and events'),
  seed: count(0, 'chooses the commands; 0 picks a random seed and prints it', { least: 0 }),
}
type Options = Values<typeof options>

export const life: Trial = {
  summary:
    "Runs random sequences of workers' jobs, chain, pin service and clock, and checks the invariants of proofs after each command.",
  options,
  example: '--runs 100 --seed 7',
  run: runLife,
}

export async function runLife(
  { scope, say }: TrialDeps,
  { runs, commands: length, checkpoints, seed: given }: Options,
): Promise<Outcome> {
  const seed = given === 0 ? Math.floor(Math.random() * 2 ** 31) : given
  const form = checkpoints ? 'checkpoints' : 'events'
  say(`seed ${seed}: ${runs} sequences of ${length} commands`)
  const counts: LifeCounts = {}
  const life = scope.add(await openLife(form), ({ stop }) => stop())
  let done = 0
  const property = fc.asyncProperty(createLifeCommands(length, form), async (commands) => {
    await life.run(commands, counts)
    done += 1
    if (done % PROGRESS === 0) say(`${done} sequences`)
  })
  const outcome = await fc.check(property, { seed, numRuns: runs })
  const { numRuns, numShrinks, counterexample, counterexamplePath, errorInstance } = outcome
  const figures = { seed, sequences: numRuns, ...counts }
  if (!outcome.failed) return { faults: [], figures }
  const error = errorInstance instanceof Error ? errorInstance.stack : errorInstance
  const replay = `replay: seed ${outcome.seed}, path ${counterexamplePath}`
  const sequence = describeLife(counterexample?.[0] ?? [])
  return {
    faults: [`failed after ${numRuns} sequences and ${numShrinks} shrinks\n${replay}\n${sequence}\n${error}`],
    figures,
  }
}
