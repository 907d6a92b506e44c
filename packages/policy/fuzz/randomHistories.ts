import type { TxMetadata } from '@countersign/protocol'
import { createRandom, type Random } from '../../protocol/fuzz/random.ts'
import { createPolicy } from '../src/assertPolicy.ts'
import { checkPolicy, type TimedSample } from '../src/checkPolicy.ts'
import type { Policy, Schedule, TransactionRule } from '../src/policy.ts'
import { alice, bob, payment, satellite } from '../test/policies.ts'

/*
 * A model of chains and attackers who try to spend more than a schedule allows. They choose every nonce, chain, recipient and past sample,
 * use
 * two enclaves at once, restart them, set their clocks back and roll back all stored state.
 */

const CHAINS = [1, 10, 8453]
const STEPS = 80

/** A transaction in the pool of its chain. Only one of those with the same nonce can run. */
type Signed = { txMetadata: TxMetadata }
type Chain = { chainId: number; nextNonce: number; pool: Signed[]; executed: number; spentWei: bigint }
/** The enclave's memory. The schedule doesn't depend on it. */
type Enclave = { clockMs: number; floorMs: number }

/** `full` counts the histories that reached the limit on a chain, which shows that the test is strict enough. */
export type Totals = { signed: number; executed: number; full: number }

/** Plays random histories. Throws if more transactions ran, or more was spent, than the schedule's formula allows. */
export function checkRandomHistories({
  runs,
  seed,
  check = checkPolicy,
}: {
  runs: number
  seed: number
  /** The engine. Tests replace it with a faulty one, which must be detected. */
  check?: typeof checkPolicy
}): Totals {
  const random = createRandom(seed)
  const totals = { signed: 0, executed: 0, full: 0 }
  for (let run = 0; run < runs; run++) {
    const { signed, executed, full } = playHistory(random, check)
    totals.signed += signed
    totals.executed += executed
    totals.full += full
  }
  return totals
}

function drawScheduled({ below, pick }: Random): { policy: Policy; schedule: Schedule } {
  const schedule = { startsAtMs: 1_000_000 + below(5_000), everyS: 1 + below(5), count: 1 + below(4) }
  const small: TransactionRule = { ...payment, chainIds: 'any', maxValueWei: pick(['0', '7', '100']), maxFeeWei: '50' }
  const large: TransactionRule = { ...small, to: [bob], maxValueWei: '1000' }
  return {
    policy: createPolicy({ version: 1, log: null, approvers: [], time: [satellite], schedule, rules: [small, large] }),
    schedule,
  }
}

function playHistory(random: Random, check: typeof checkPolicy): Totals {
  const { below, pick } = random
  const { policy, schedule } = drawScheduled(random)
  const chains = CHAINS.slice(0, 1 + below(3)).map(
    (chainId): Chain => ({ chainId, nextNonce: 0, pool: [], executed: 0, spentWei: 0n }),
  )
  let nowMs = schedule.startsAtMs - below(4_000)
  const enclaves: Enclave[] = [0, 1].map(() => ({ clockMs: nowMs, floorMs: 0 }))
  /** Keeps all samples, because a thief may use an old one. */
  const samples: TimedSample[] = []
  let signed = 0

  const advance = () => {
    nowMs += pick([0, 1, 10, 500, 1_000, 4_999])
    for (const enclave of enclaves) enclave.clockMs = nowMs
  }
  const sample = () => samples.push({ source: satellite, timeMs: nowMs })
  // The clock floor is lost and the clock is arbitrary: only samples count.
  const restart = () => Object.assign(pick(enclaves), { clockMs: nowMs + pick([-100_000, 0, 100_000]), floorMs: 0 })
  const sign = () => {
    const [chain, enclave] = [pick(chains), pick(enclaves)]
    const nonce = Math.max(0, chain.nextNonce + pick([-1, 0, 0, 0, 1, 1, 2, 3, 5, 20]))
    const latest = samples.at(-1)
    const chosen = latest === undefined ? undefined : pick([latest, latest, pick(samples)])
    if (chosen !== undefined && chosen.timeMs < enclave.floorMs - 65_000) return
    const txMetadata = drawTransaction(random, chain.chainId, nonce)
    const request = { kind: 'transaction', txMetadata, ...(chosen === undefined ? {} : { sample: chosen }) } as const
    if (!check(policy, request).allowed) return
    if (nowMs < schedule.startsAtMs) throw new Error('signed before the start')
    enclave.floorMs = Math.max(enclave.floorMs, chosen?.timeMs ?? 0)
    signed += 1
    chain.pool.push({ txMetadata })
  }
  const run = () => {
    const chain = pick(chains)
    const next = chain.pool.filter(({ txMetadata }) => txMetadata.nonce === chain.nextNonce)
    if (next.length > 0) execute(random, chain, pick(next))
  }

  const actions = [advance, sample, sample, restart, sign, sign, sign, sign, sign, run, run, run]
  let full = 0
  for (let step = 0; step < STEPS; step++) {
    pick(actions)()
    for (const chain of chains) if (isFull(policy, schedule, chain, nowMs)) full = 1
  }
  return { signed, executed: chains.reduce((sum, { executed }) => sum + executed, 0), full }
}

function drawTransaction({ pick }: Random, chainId: number, nonce: number): TxMetadata {
  return {
    chainId,
    nonce,
    to: pick([alice, bob]),
    value: pick(['0', '0', '7', '100', '101', '1000', '1001']),
    data: '0x',
    gas: pick(['1', '5']),
    maxFeePerGas: pick(['1', '10', '11', '10']),
    maxPriorityFeePerGas: '0',
  }
}

/** The chain takes the value, and the whole maximum fee. */
function execute({ below }: Random, chain: Chain, { txMetadata }: Signed): void {
  const fee = BigInt(txMetadata.gas) * BigInt(txMetadata.maxFeePerGas)
  chain.nextNonce += 1
  chain.executed += 1
  // A reverted transaction costs its fee.
  chain.spentWei += below(5) === 0 ? fee : fee + BigInt(txMetadata.value)
  chain.pool = chain.pool.filter((one) => one.txMetadata.nonce >= chain.nextNonce)
}

/** Whether the limit was reached. Throws if it was exceeded, or if more was spent. */
function isFull({ rules }: Policy, schedule: Schedule, chain: Chain, nowMs: number): boolean {
  // Counted, unlike the engine's computation.
  let limit = 0
  for (let dueMs = schedule.startsAtMs; dueMs <= nowMs; dueMs += 1000 * schedule.everyS) limit += schedule.count
  let largestWei = 0n
  for (const rule of rules as readonly TransactionRule[]) {
    const sum = BigInt(rule.maxValueWei) + BigInt(rule.maxFeeWei)
    if (sum > largestWei) largestWei = sum
  }
  if (chain.executed > limit) throw new Error(`${chain.executed} executed, ${limit} allowed`)
  if (chain.spentWei > BigInt(limit) * largestWei) throw new Error('more was spent than the schedule allows')
  return limit > 0 && chain.executed === limit
}
