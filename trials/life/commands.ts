import type { FakeChainFault } from '@countersign/testing'
import fc from 'fast-check'
import type { PinErrorCode } from '../../services/coordinator/src/publish/ipfs/pinError.ts'
import { CONFIRM_QUEUE, PIN_QUEUE, PUBLISH_QUEUE } from '../../services/coordinator/src/store/jobs.ts'

export const stages = [PIN_QUEUE, PUBLISH_QUEUE, CONFIRM_QUEUE] as const

/** How the pin service fails one call: before it has any effect, or after it (`isLate`). */
export type PinFault = {
  at: number
  code: PinErrorCode | 'other_bytes' | 'forgets' | 'unknown' | 'silent'
  isLate: boolean
}

/** Kills the process at the nth call to the outside: before the call has any effect, or after it and before its answer. */
export type CrashPoint = { at: number; when: 'before' | 'after' }

/** One of two processes runs a job. */
export type StageRun = {
  stage: (typeof stages)[number]
  process: 0 | 1
  /** Index of the first proof, and number of proofs, for a pin. */
  pick: number
  pins: number
  /** Pins without a job, as if one job were handed out twice. */
  isExtra: boolean
  pinFault: PinFault | undefined
  crash: CrashPoint | undefined
  /** Whether a failed job is retried or lost. */
  fate: 'retried' | 'lost'
}

/** What a worker publishes for signatures with a log entry: `PUBLISH`. */
export type Mode = 'events' | 'checkpoints'

export type WorldCommand =
  | { do: 'mine'; blocks: number }
  | { do: 'reorg'; depth: number; keep: 'all' | 'none' }
  | { do: 'drop'; pick: number }
  /** A process that was frozen resumes and sends its stored transaction. */
  | { do: 'send again'; pick: number }
  | { do: 'hold'; isHeld: boolean }
  | { do: 'set fee'; gwei: number }
  | { do: 'wait'; ms: number }
  | { do: 'revert'; pick: number; isOn: boolean }
  /** Another sender uses the publisher's key. */
  | { do: 'use nonce' }
  /** The node forgets a mined transaction and its receipt, or remembers all of them. It never forgets events. */
  | { do: 'forget'; pick: number; isOn: boolean }
  /** The publisher's account has no funds, or enough. */
  | { do: 'empty account'; isEmpty: boolean }
  /** Another account is the publisher of a log, or this one again. */
  | { do: 'rotate'; log: number; isOn: boolean }
  /** Another publisher's checkpoint of our log gets on the chain. */
  | { do: 'advance'; log: number; pick: number }

/** Commands name a log by its place. */
export const LOGS = 2

export type LifeCommand =
  /** The command that all others shrink to. */
  | { do: 'nothing' }
  /** `logged` is undefined for signatures without a log entry. */
  | {
      do: 'sign'
      count: number
      wallet: number
      isAgain: boolean
      logged?: { log: number; others: number } | undefined
    }
  | {
      do: 'run'
      run: StageRun
      fault: ChainFault | undefined
    }
  /** Two workers and the world take turns, call by call. */
  | { do: 'race'; runs: [StageRun, StageRun]; world: WorldCommand[]; turns: number[] }
  /** The pin service is down for several attempts of every waiting proof. */
  | { do: 'pin outage'; code: PinErrorCode; attempts: number }
  | { do: 'sweep' }
  /** Restarts a worker with another setting. */
  | { do: 'switch'; process: 0 | 1; mode: Mode }
  | WorldCommand

export const PIN_DEADLINE_MS = 3_600_000
/** Below half an hour, the longest gap between two checks that a worker treats as one continuous observation. */
export const PUBLISH_DEADLINE_MS = 600_000
/** Blocks beyond this depth may be final. */
const MAX_REORG = 5
/** Base fee above the adapter's maximum bid. */
export const TOO_DEAR_GWEI = 6_000

const pick = fc.nat({ max: 20 })
const pinCodes = ['pin_unavailable', 'pin_refused', 'pin_mismatch', 'pin_not_found'] as const
/** Undefined most of the time. */
const seldom = <T>(arbitrary: fc.Arbitrary<T>, weight = 1) =>
  fc.oneof({ arbitrary: fc.constant(undefined), weight: 3 }, { arbitrary, weight })

type Limits = {
  /** The last call of the pin service, and of any kind, that can fail or crash in a run. */
  pinCalls: number
  calls: number
}

function createRuns(limits: Limits & { pins: number }): fc.Arbitrary<StageRun> {
  return fc.record({
    stage: fc.constantFrom(...stages),
    process: fc.constantFrom(0, 1),
    pick,
    pins: fc.integer({ min: 1, max: limits.pins }),
    isExtra: fc.oneof({ arbitrary: fc.constant(false), weight: 5 }, { arbitrary: fc.constant(true), weight: 1 }),
    pinFault: seldom(
      fc.record({
        at: fc.integer({ min: 1, max: limits.pinCalls }),
        code: fc.constantFrom(...pinCodes, 'other_bytes', 'forgets', 'unknown', 'silent'),
        isLate: fc.boolean(),
      }),
    ),
    crash: seldom(
      fc.record({
        at: fc.integer({ min: 1, max: limits.calls }),
        when: fc.constantFrom('before' as const, 'after' as const),
      }),
    ),
    fate: fc.constantFrom('retried', 'lost'),
  })
}

const methods = [
  'eth_chainId',
  'eth_estimateGas',
  'eth_getTransactionCount',
  'eth_sendRawTransaction',
  'eth_getTransactionReceipt',
  'eth_getBlockByNumber',
  'eth_getLogs',
]

type ChainFault = { name: FakeChainFault; count: number; methods?: readonly string[] }

const createFaults = (failing: readonly string[]): fc.Arbitrary<ChainFault> =>
  fc.oneof(
    fc.record({
      name: fc.constantFrom<FakeChainFault>('down', 'error', 'garbage', 'truncated'),
      count: fc.constantFrom(1, 2, 1_000),
      methods: fc.constantFrom(...failing.map((method) => [method])),
    }),
    fc.record({
      name: fc.constantFrom<FakeChainFault>('down', 'reset-after-accept', 'wrong-hash', 'no-receipts', 'lies-mined'),
      count: fc.constantFrom(1, 2, 1_000),
    }),
  )

const worldCommands: fc.Arbitrary<WorldCommand> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('mine'), blocks: fc.nat({ max: 3 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('reorg'),
      depth: fc.integer({ min: 1, max: MAX_REORG }),
      keep: fc.constantFrom('all', 'none'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drop'), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('send again'), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('hold'), isHeld: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('set fee'), gwei: fc.constantFrom(1, 4, 100, TOO_DEAR_GWEI) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('wait'), ms: fc.constantFrom(1_000, 15_000, 61_000, 600_000) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('wait'),
      ms: fc.constantFrom(PIN_DEADLINE_MS, PUBLISH_DEADLINE_MS, PUBLISH_DEADLINE_MS + 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('revert'), pick, isOn: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('use nonce') }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('forget'), pick, isOn: fc.boolean() }) },
)

const log = fc.nat({ max: LOGS - 1 })
/** More often the first value. */
const mostly = <T>(usual: T, other: T) =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 2 }, { arbitrary: fc.constant(other), weight: 1 })

const worldOfCheckpoints: fc.Arbitrary<WorldCommand> = fc.oneof(
  { weight: 27, arbitrary: worldCommands },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('empty account'), isEmpty: mostly(false, true) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rotate'), log, isOn: mostly(false, true) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('advance'), log, pick }) },
)

const signFields = {
  do: fc.constant('sign' as const),
  count: fc.integer({ min: 1, max: 4 }),
  wallet: fc.nat({ max: 1 }),
  isAgain: fc.oneof({ arbitrary: fc.constant(false), weight: 3 }, { arbitrary: fc.constant(true), weight: 1 }),
}
const logged = fc.oneof(
  { arbitrary: fc.record({ log, others: fc.nat({ max: 2 }) }), weight: 7 },
  { arbitrary: fc.constant(undefined), weight: 1 },
)

/** What differs between the two forms of the trial. */
type Form = {
  signs: fc.Arbitrary<LifeCommand>
  world: fc.Arbitrary<WorldCommand>
  faults: fc.Arbitrary<ChainFault>
  limits: Limits
  others: { weight: number; arbitrary: fc.Arbitrary<LifeCommand> }[]
}

const forms: Record<Mode, Form> = {
  events: {
    signs: fc.record(signFields),
    world: worldCommands,
    faults: createFaults(methods),
    limits: { pinCalls: 6, calls: 16 },
    others: [],
  },
  checkpoints: {
    signs: fc.record({ ...signFields, logged }),
    world: worldOfCheckpoints,
    faults: createFaults([...methods, 'eth_call']),
    limits: { pinCalls: 10, calls: 36 },
    others: [
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('switch' as const),
          process: fc.constantFrom(0 as const, 1 as const),
          mode: mostly<Mode>('checkpoints', 'events'),
        }),
      },
    ],
  },
}

/** Sequences of this many commands. Commands shrink to `nothing`, so that a failing sequence becomes short. */
export function createLifeCommands(length: number, mode: Mode = 'events'): fc.Arbitrary<LifeCommand[]> {
  const { signs, world, faults, limits, others } = forms[mode]
  const runs = fc.record({
    do: fc.constant('run' as const),
    run: createRuns({ ...limits, pins: 4 }),
    fault: seldom(faults),
  })
  // Workers take turns call by call, so each has one call at a time.
  const one = createRuns({ ...limits, pins: 1 })
  const races = fc.record({
    do: fc.constant('race' as const),
    runs: fc.tuple(one, one),
    world: fc.array(world, { maxLength: 3 }),
    turns: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 24 }),
  })
  const command: fc.Arbitrary<LifeCommand> = fc.oneof(
    { withCrossShrink: true },
    { weight: 1, arbitrary: fc.constant<LifeCommand>({ do: 'nothing' }) },
    { weight: 14, arbitrary: signs },
    { weight: 60, arbitrary: runs },
    { weight: 15, arbitrary: races },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('pin outage' as const),
        code: fc.constantFrom(...pinCodes),
        attempts: fc.constantFrom(2, 12),
      }),
    },
    { weight: 5, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
    { weight: 54, arbitrary: world },
    ...others,
  )
  return fc.array(command, { minLength: length, maxLength: length, size: 'max' })
}

/** Lists the commands of a sequence, without those that do nothing. */
export function describeLife(commands: readonly LifeCommand[]): string {
  const lines = commands.filter((command) => command.do !== 'nothing').map((command) => fc.stringify(command))
  return lines.join('\n')
}

/** A run without faults. */
export const plainRun: Omit<StageRun, 'stage'> = {
  process: 0,
  pick: 0,
  pins: 1,
  isExtra: false,
  pinFault: undefined,
  crash: undefined,
  fate: 'retried',
}

/** Name of a command in the counts. */
export function toKind(command: LifeCommand): string {
  if (command.do === 'run') return `run ${command.run.stage}`
  if (command.do === 'race') return `race ${command.runs.map(({ stage }) => stage).join(' and ')}`
  return command.do
}

/** Whether the command can change rows. */
export function isOfDatabase({ do: kind }: LifeCommand): boolean {
  return ['sign', 'run', 'race', 'pin outage', 'sweep'].includes(kind)
}
