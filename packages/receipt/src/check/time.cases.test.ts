import { describe, expect, test } from 'vitest'
import { toExitCode } from '../../../../apps/verifier/src/exitCodes.ts'
import { conclude } from '../../../verify/src/verify.ts'
import { createEvent, statusOf } from '../../test/checkReceipt.ts'
import { type CheckReceiptOptions, checkReceipt, type ReceiptCheck } from '../checkReceipt.ts'
import { createReceiptSimulator } from '../simulator/index.ts'
import type { ChainLog, ChainReader } from './chainReader.ts'
import type { StepStatus } from './steps.ts'

const service = createReceiptSimulator()
const signedAt = new Date('2026-06-15T12:00:00.123Z')
const { bytes, collateral, anchors, cid, receipt } = await service.issue({
  signedAt,
  config: { rootSecret: `attested:sha256:${'ab'.repeat(32)}` },
})
const contract = `0x${'ab'.repeat(20)}`
const { from, txHash } = receipt.transaction

const HOUR_MS = 3_600_000
const LIMIT_MS = 72 * HOUR_MS
const YEAR_MS = 365 * 24 * HOUR_MS

/** The delay of the event after the signing. */
function event(delayMs: number, changes: Partial<ChainLog> & { cid?: string } = {}): ChainLog {
  const { cid: named = cid, ...log } = changes
  const blockTime = new Date(signedAt.getTime() + delayMs)
  return { ...createEvent({ contract, wallet: from, txHash, cid: named, blockTime }), ...log }
}

/** Blocks have whole seconds. */
const block = (delayMs: number) => event(Math.floor((signedAt.getTime() + delayMs) / 1000) * 1000 - signedAt.getTime())

const silent = () => Promise.reject(new Error('connection refused'))

type Case = {
  name: string
  /** The node's response. Undefined for no node. */
  chain?: readonly ChainLog[] | typeof silent
  options?: Partial<CheckReceiptOptions>
  hasContract?: boolean
  /** The statuses of `event`, `time` and `time-bound`. */
  steps: readonly [event: StepStatus, time: StepStatus, bound: StepStatus]
  timeBound: ReceiptCheck['timeBound']
  /** For a reader who takes the roots for hardware. */
  verdict: ReceiptCheck['verdict']
  exitCode: number
}

const bounded = { steps: ['pass', 'pass', 'pass'], timeBound: 'bounded', verdict: 'verified', exitCode: 0 } as const
const late = { steps: ['pass', 'pass', 'skip'], timeBound: 'late', verdict: 'late', exitCode: 6 } as const
const unbounded = {
  steps: ['skip', 'pass', 'skip'],
  timeBound: 'unbounded',
  verdict: 'unbounded',
  exitCode: 7,
} as const
const incomplete = { ...unbounded, verdict: 'incomplete', exitCode: 5 } as const
const failed = { steps: ['fail', 'pass', 'skip'], timeBound: 'unbounded', verdict: 'failed', exitCode: 1 } as const
const limit = (maximumEventDelayS: number) => ({ policy: { time: { maximumEventDelayS } } })

const cases: readonly Case[] = [
  { name: 'an event in the second of the signing, which begins before it', chain: [block(0)], ...bounded },
  { name: 'an event within the tolerance before it', chain: [event(-5_000)], ...bounded },
  {
    name: 'an event before the signature',
    chain: [event(-5_001)],
    steps: ['pass', 'fail', 'pass'],
    timeBound: 'bounded',
    verdict: 'failed',
    exitCode: 1,
  },
  { name: 'an event 72 h later', chain: [event(LIMIT_MS)], ...bounded },
  { name: 'an event 72 h and 1 ms later', chain: [event(LIMIT_MS + 1)], ...late },
  { name: 'the last block within 72 h', chain: [block(LIMIT_MS)], ...bounded },
  { name: 'the first block after 72 h', chain: [block(LIMIT_MS + 1_000)], ...late },
  { name: 'an event a year later', chain: [event(YEAR_MS)], ...late },
  { name: 'an event ten years later', chain: [event(10 * YEAR_MS)], ...late },
  { name: 'two events, the earlier listed first', chain: [event(1_000), event(YEAR_MS)], ...bounded },
  { name: 'two events, the earlier listed last', chain: [event(YEAR_MS), event(1_000)], ...bounded },
  { name: 'two late events', chain: [event(YEAR_MS), event(LIMIT_MS + 1)], ...late },
  {
    name: 'two events, the earlier of which is before the signature',
    chain: [event(1_000), event(-YEAR_MS)],
    steps: ['pass', 'fail', 'pass'],
    timeBound: 'bounded',
    verdict: 'failed',
    exitCode: 1,
  },
  {
    name: 'a late event, and one in time that names another receipt',
    chain: [event(1_000, { cid: 'bafkreig3tsm3pm3x3ismprkjisz5h6g5ogqkfedallclnmnie3sfnref3y' }), event(YEAR_MS)],
    ...late,
  },
  {
    name: 'a late event, and one in time of another contract',
    chain: [event(1_000, { address: `0x${'cd'.repeat(20)}` }), event(YEAR_MS)],
    ...late,
  },
  {
    name: 'with another event that names no receipt',
    chain: [event(500, { data: '0x00' }), event(1_000), event(1_500, { cid: 'no receipt' })],
    ...bounded,
  },
  { name: 'only one of no receipt', chain: [event(500, { cid: 'no receipt' })], ...failed },
  { name: 'a shorter limit, kept', chain: [event(60_000)], options: limit(60), ...bounded },
  { name: 'a shorter limit, missed', chain: [event(60_001)], options: limit(60), ...late },
  { name: 'a longer limit, kept', chain: [event(YEAR_MS)], options: limit(YEAR_MS / 1000), ...bounded },
  { name: 'no time at all', chain: [event(1)], options: limit(0), ...late },
  { name: 'a limit that is no number', chain: [event(1_000)], options: limit(Number.NaN), ...late },
  { name: 'no chain to ask', ...unbounded },
  { name: 'a chain, but no contract to ask about', chain: [event(1_000)], hasContract: false, ...unbounded },
  { name: 'a chain that does not answer', chain: silent, ...incomplete },
  { name: 'no event', chain: [], ...failed },
  { name: 'no event, and none due', chain: [], options: { isEventDue: false }, ...unbounded },
  { name: 'an event in time, though none was due', chain: [event(1_000)], options: { isEventDue: false }, ...bounded },
  { name: 'a late event, though none was due', chain: [event(YEAR_MS)], options: { isEventDue: false }, ...late },
  { name: 'no answer, and no event due', chain: silent, options: { isEventDue: false }, ...incomplete },
]

const hardware = {
  roots: service.roots.map((root) => ({ ...root, mode: 'hardware' as const })),
  mockEntropyKeys: [],
}
const mock = { roots: service.roots, mockEntropyKeys: service.mockEntropyKeys }

function check({ chain, options, hasContract = true }: Case, reader: Pick<CheckReceiptOptions, 'roots'>) {
  const node: ChainReader | undefined = chain && {
    getLogs: typeof chain === 'function' ? chain : async () => chain,
    getTransactionState: async () => 'mined',
  }
  return checkReceipt(bytes, collateral, {
    anchors: hasContract ? { ...anchors, contract } : anchors,
    ...(node === undefined ? {} : { chain: node }),
    ...options,
    ...reader,
  })
}

function exitCodeOf(result: ReceiptCheck, isMockRefused = false) {
  return toExitCode({ conclusion: conclude({ ...result, isMockRefused, lies: [] }), receipt: result.receipt })
}

describe('only an event at most 72 h after the stated time of signing makes a receipt plainly verified', () => {
  test.each(cases.map((entry) => [entry.name, entry] as const))('%s', async (_, entry) => {
    const result = await check(entry, hardware)
    const { verdict, timeBound } = result
    const steps = (['event', 'time', 'time-bound'] as const).map((id) => statusOf(result, id))
    expect({ steps, timeBound, verdict, exitCode: exitCodeOf(result) }).toEqual({
      steps: entry.steps,
      timeBound: entry.timeBound,
      verdict: entry.verdict,
      exitCode: entry.exitCode,
    })
  })

  test.each(cases.map((entry) => [entry.name, entry] as const))(
    'mock evidence takes the same way where it is allowed, and is mock where it is not: %s',
    async (_, entry) => {
      const result = await check(entry, mock)
      const isJudged = entry.verdict !== 'failed' && entry.verdict !== 'incomplete'
      expect(result).toMatchObject({ verdict: isJudged ? 'mock' : entry.verdict, timeBound: entry.timeBound })
      expect(exitCodeOf(result)).toBe(entry.exitCode)
      expect(exitCodeOf(result, true)).toBe(entry.verdict === 'failed' ? 1 : 3)
    },
  )
})

test.each([
  ['an event in time', [event(1_000)]],
  ['a late event', [event(YEAR_MS)]],
] as const)('unknown code comes before the time: %s', async (_, chain) => {
  const options = { anchors: { ...anchors, configHashes: [], contract } }
  const result = await check({ name: '', chain, options, ...bounded }, hardware)
  expect(result.verdict).toBe('unknown-code')
  expect(exitCodeOf(result)).toBe(2)
})

test('a false claim of the service comes before the time', async () => {
  const result = await check({ name: '', chain: [event(YEAR_MS)], ...late }, hardware)
  expect(conclude({ ...result, isMockRefused: false, lies: [{ member: 'chainId' }] })).toBe('contradicted')
})
