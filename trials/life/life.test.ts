import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLifeCommands, type LifeCommand, PUBLISH_DEADLINE_MS, plainRun } from './commands.ts'
import { type Life, openLife } from './runLife.ts'
import type { LifeCounts } from './runSequence.ts'

// More sequences: npm run life. With this seed, these few sequences reach every outcome but one.
const SEQUENCES = 6
const COMMANDS = 50
const SEED = 26
const SEED_OF_CHECKPOINTS = 1

type RunFault = Extract<LifeCommand, { do: 'run' }>['fault']

const run = (stage: 'pin' | 'publish' | 'confirm', fault?: RunFault): LifeCommand => ({
  do: 'run',
  run: { ...plainRun, stage },
  fault,
})

/** Reaches the outcome that the seed doesn't. */
const reverted: LifeCommand[] = [
  { do: 'sign', count: 1, wallet: 0, isAgain: false },
  run('pin'),
  run('publish'),
  { do: 'revert', pick: 0, isOn: true },
  { do: 'mine', blocks: 3 },
  run('confirm'),
]

/** One of two signatures is pinned after the checkpoint that covers both, and the log doesn't grow. */
const late: LifeCommand[] = [
  { do: 'sign', count: 2, wallet: 0, isAgain: false, logged: { log: 0, others: 1 } },
  run('pin'),
  run('publish'),
  { do: 'mine', blocks: 1 },
  run('pin'),
  run('publish'),
]

describe('the life of proofs', () => {
  let life: Life
  beforeAll(async () => {
    life = await openLife()
  })
  afterAll(() => life.stop())

  test('I2–I6 and I8 hold after every command, and every proof becomes final', async () => {
    const counts: LifeCounts = {}
    await fc.assert(
      fc.asyncProperty(createLifeCommands(COMMANDS), (commands) => life.run(commands, counts)),
      { seed: SEED, numRuns: SEQUENCES + 1, examples: [[reverted]] },
    )
    // The sequences must include failures.
    const ends = Object.keys(counts).filter((what) => /^(?:proof|publication): /.test(what))
    expect(ends).toEqual(
      expect.arrayContaining([
        'proof: complete',
        'proof: onchain_failed, publish_cancelled',
        'proof: onchain_failed, publish_reverted',
        'publication: cancelled',
        'publication: final',
        'publication: lost',
        'publication: reverted',
      ]),
    )
  }, 600_000)

  test('an event comes back after a reorganization that also removed an earlier transaction of another sender', async () => {
    const counts: LifeCounts = {}
    await life.run(
      [
        { do: 'use nonce' },
        { do: 'sign', count: 1, wallet: 0, isAgain: false },
        run('pin'),
        run('publish'),
        { do: 'mine', blocks: 3 },
        run('confirm'),
        { do: 'reorg', depth: 4, keep: 'none' },
      ],
      counts,
    )
    expect(counts).toMatchObject({ 'proof: complete': 1, 'publication: cancelled': 1, 'publication: final': 1 })
  })

  test.each<[string, RunFault, object]>([
    ['fails while the chain is down', { name: 'down', count: 1_000 }, { 'proof: onchain_failed, publish_deadline': 1 }],
    ['is published otherwise', undefined, { 'proof: complete': 1, 'publication: final': 1 }],
  ])('a proof first tried after its deadline %s', async (_, fault, expected) => {
    const counts: LifeCounts = {}
    await life.run(
      [
        { do: 'sign', count: 1, wallet: 0, isAgain: false },
        run('pin'),
        { do: 'wait', ms: PUBLISH_DEADLINE_MS + 1 },
        run('publish', fault),
        // One failed attempt isn't enough.
        { do: 'wait', ms: 1_800_000 },
        run('publish', fault),
      ],
      counts,
    )
    expect(counts).toMatchObject(expected)
  })
})

describe('the life of proofs with checkpoints', () => {
  let life: Life
  beforeAll(async () => {
    life = await openLife('checkpoints')
  })
  afterAll(() => life.stop())

  test('one final checkpoint or one event publishes each proof', async () => {
    const counts: LifeCounts = {}
    await fc.assert(
      fc.asyncProperty(createLifeCommands(COMMANDS, 'checkpoints'), (commands) => life.run(commands, counts)),
      { seed: SEED_OF_CHECKPOINTS, numRuns: SEQUENCES + 1, examples: [[late]] },
    )
    expect(Object.keys(counts)).toEqual(
      expect.arrayContaining([
        'anchor: in order',
        'anchor: late',
        'event: log entry',
        'event: no log entry',
        'publication: final',
        'switch',
      ]),
    )
  }, 600_000)
})
