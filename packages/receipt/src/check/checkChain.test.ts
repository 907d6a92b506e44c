import { ServiceError } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { createEvent, encodeCid } from '../../test/checkReceipt.ts'
import { checkReceipt } from '../checkReceipt.ts'
import { createReceiptSimulator } from '../simulator/index.ts'
import type { ChainLog, ChainReader } from './chainReader.ts'
import { checkChain } from './checkChain.ts'
import { createTranscript } from './steps.ts'

const service = createReceiptSimulator()
const signedAt = new Date('2026-06-15T12:00:00.123Z')
const { bytes, collateral, anchors, cid, receipt } = await service.issue({ signedAt })
const contract = `0x${'ab'.repeat(20)}`
const { from, txHash } = receipt.transaction

const log = createEvent({ contract, wallet: from, txHash, cid, blockTime: new Date(signedAt.getTime() + 9_000) })

function check(reader: Partial<ChainReader>, address: string | null = contract, isEventDue = true) {
  const chain: ChainReader = { getLogs: async () => [log], getTransactionState: async () => 'mined', ...reader }
  return checkReceipt(bytes, collateral, {
    roots: service.roots,
    mockEntropyKeys: service.mockEntropyKeys,
    anchors: address === null ? anchors : { ...anchors, contract: address },
    chain,
    isEventDue,
  })
}

const stepOf = async (result: ReturnType<typeof check>, id: string) =>
  (await result).steps.find((step) => step.id === id)

describe('the chain points to the receipt', () => {
  test('an event with this CID passes, with the address in either case', async () => {
    expect(await stepOf(check({}, contract.toUpperCase().replace('0X', '0x')), 'event')).toMatchObject({
      status: 'pass',
    })
    expect(await check({})).toMatchObject({ verdict: 'mock' })
  })

  test('requests exactly this contract, wallet and transaction', async () => {
    const queries: unknown[] = []
    await check({
      getLogs: async (query) => {
        queries.push(query)
        return [log]
      },
    })
    expect(queries).toEqual([{ address: contract, topics: log.topics }])
  })

  test.each<[string, ChainLog[]]>([
    ['no event', []],
    [
      'an event with another CID',
      [{ ...log, data: encodeCid('bafkreig3tsm3pm3x3ismprkjisz5h6g5ogqkfedallclnmnie3sfnref3y') }],
    ],
    ['an event of another contract', [{ ...log, address: `0x${'cd'.repeat(20)}` }]],
    ['an event of another wallet', [{ ...log, topics: [log.topics[0] as string, `0x${'0'.repeat(63)}1`, txHash] }]],
    [
      'an event of another transaction',
      [{ ...log, topics: [log.topics[0] as string, log.topics[1] as string, `0x${'11'.repeat(32)}`] }],
    ],
    ['another event', [{ ...log, topics: [`0x${'11'.repeat(32)}`, log.topics[1] as string, txHash] }]],
    ['data that is not a string', [{ ...log, data: '0x00' }]],
  ])('%s fails', async (_, logs) => {
    const result = check({ getLogs: async () => logs })
    expect(await stepOf(result, 'event')).toMatchObject({ status: 'fail' })
    expect((await result).verdict).toBe('failed')
  })

  test('an event older than the signature fails the time bracket, with a tolerance of 5 s', async () => {
    const at = (ms: number) => [{ ...log, blockTime: new Date(signedAt.getTime() + ms) }]
    expect(await stepOf(check({ getLogs: async () => at(-5_000) }), 'time')).toMatchObject({ status: 'pass' })
    expect(await stepOf(check({ getLogs: async () => at(-5_001) }), 'time')).toMatchObject({ status: 'fail' })
  })

  test('fails the time step if the date of the coordinator’s report does not exist', async () => {
    const { view } = await check({})
    if (view === undefined) throw new Error('no view')
    const { coordinator } = view
    const selfAttestation = { ...coordinator.selfAttestation, fetchedAt: '2026-02-30T12:00:00.000Z' }
    const transcript = createTranscript()
    await checkChain(
      transcript,
      { ...view, coordinator: { ...coordinator, selfAttestation } },
      { chain: undefined, anchors, policy: {}, cid, isEventDue: true, anchor: undefined, entry: undefined },
    )
    expect(transcript.steps.find(({ id }) => id === 'time')).toMatchObject({ status: 'fail' })
  })

  test('an unavailable node proves nothing: incomplete', async () => {
    const result = check({ getLogs: () => Promise.reject(new Error('connection refused')) })
    expect(await stepOf(result, 'event')).toMatchObject({
      status: 'skip',
      detail: expect.stringContaining('connection refused'),
    })
    expect((await result).verdict).toBe('incomplete')
  })

  test('the details of an error name the node and the reason', async () => {
    const error = new ServiceError('chain_unavailable', 'the chain could not be asked', {
      details: 'node.test answers 503',
    })
    const result = check({ getLogs: () => Promise.reject(error), getTransactionState: () => Promise.reject(error) })
    for (const id of ['event', 'transaction']) {
      expect((await stepOf(result, id))?.detail).toBe('The chain is unavailable: node.test answers 503.')
    }
  })

  describe('if no event is expected', () => {
    const early = (getLogs: ChainReader['getLogs']) => check({ getLogs }, contract, false)

    test.each<[string, ChainLog[]]>([
      ['no event', []],
      ['only events of another contract', [{ ...log, address: `0x${'cd'.repeat(20)}` }]],
    ])('%s is no failure', async (_, logs) => {
      const result = early(async () => logs)
      expect(await stepOf(result, 'event')).toMatchObject({ status: 'skip' })
      expect(await result).toMatchObject({ verdict: 'mock', isEventMissing: true })
    })

    test('an existing event counts', async () => {
      expect(await early(async () => [log])).toMatchObject({ verdict: 'mock', isEventMissing: false })
      for (const wrong of [
        { ...log, data: '0x00' },
        { ...log, data: encodeCid('x') },
      ]) {
        expect(await early(async () => [wrong])).toMatchObject({ verdict: 'failed', isEventMissing: false })
      }
    })

    test('an unavailable node makes it incomplete', async () => {
      const result = await early(() => Promise.reject(new Error('connection refused')))
      expect(result).toMatchObject({ verdict: 'incomplete', isEventMissing: false })
    })
  })

  test('without a contract address the event is skipped, and not required', async () => {
    const result = check({}, null)
    expect(await stepOf(result, 'event')).toMatchObject({ status: 'skip' })
    expect((await result).verdict).toBe('mock')
  })

  test.each([
    ['mined', 'pass'],
    ['pending', 'skip'],
    ['unknown', 'skip'],
  ] as const)('a transaction that is %s: %s, never a failure', async (state, status) => {
    const result = check({ getTransactionState: async () => state })
    expect(await stepOf(result, 'transaction')).toMatchObject({ status })
    expect((await result).verdict).toBe('mock')
  })
})
