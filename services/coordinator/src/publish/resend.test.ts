import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  createScene,
  gwei,
  publisher,
  publisherKey,
  type Scene,
  SEND,
  startTestPublishing,
  stranger,
  strangerKey,
  type TestPublishing,
} from '../../test/publish/publishing.ts'
import { ChainError } from './chain/chainError.ts'

describe('sending again', () => {
  let publishing: TestPublishing
  let scene: Scene
  beforeAll(async () => {
    publishing = await startTestPublishing()
  })
  afterAll(() => publishing.stop())
  beforeEach(async () => {
    scene = await createScene(publishing, { checksBaseFee: true })
  })

  /** Applies from the next block on. */
  function raiseBaseFee(wei: bigint) {
    scene.node.setBaseFee(wei)
    scene.node.mine()
  }
  const kinds = async () => (await scene.publications())[0]?.transactions.map(({ kind, isSent }) => [kind, isSent])

  describe('a node that rejects fees below the base fee', () => {
    test('an unsent publication is raised at once, and later ones are sent', async () => {
      await scene.claimOnly(2)
      raiseBaseFee(50n * gwei)
      await scene.send(1)
      expect(scene.node.mempool().map(({ nonce }) => nonce)).toEqual([1])
      await scene.confirm()
      expect(await kinds()).toEqual([
        ['publish', false],
        ['publish', true],
      ])
      await scene.finish({ complete: 3 })
      expect(scene.node.transactions().map(({ nonce }) => nonce)).toEqual([0, 1])
    })

    test('an unsent replacement is raised', async () => {
      const hash = await scene.send(1)
      scene.node.holdMempool(true)
      scene.pass(60_000)
      scene.node.setFault('down', SEND)
      await scene.confirm()
      scene.node.setFault()
      scene.node.dropTransaction(hash)
      scene.node.holdMempool(false)
      raiseBaseFee(50n * gwei)
      await scene.confirm()
      expect(await kinds()).toEqual([
        ['publish', true],
        ['publish', false],
        ['publish', true],
      ])
      await scene.finish({ complete: 1 })
    })

    test('an unsent cancel is raised', async () => {
      await scene.claimOnly(1)
      await scene.passDeadline()
      scene.node.setFault('down', SEND)
      await scene.confirm()
      scene.node.setFault()
      raiseBaseFee(50n * gwei)
      await scene.confirm()
      expect(await kinds()).toEqual([
        ['publish', false],
        ['cancel', false],
        ['cancel', true],
      ])
      await scene.finish({ onchain_failed: 1 })
    })

    test('a complete publication that dropped out of the chain is raised', async () => {
      await scene.send(1)
      scene.node.mine(6)
      await scene.confirm()
      scene.node.reorg(6, { keep: 'none' })
      raiseBaseFee(50n * gwei)
      scene.pass(15_000)
      await scene.confirm()
      expect(await scene.publications()).toMatchObject([{ status: 'confirmed', transactions: [{}, { isSent: true }] }])
      await scene.finish({ complete: 1 })
    })
  })

  test('resends a dropped publication of another account unchanged', async () => {
    const hash = await scene.send(2)
    scene.node.mine(6)
    await scene.confirm()
    scene.node.reorg(6, { keep: 'none' })
    raiseBaseFee(50n * gwei)
    scene.pass(60_000)
    const chain = scene.connect({ privateKey: strangerKey })
    await scene.confirm({ chain })
    scene.node.mine()
    expect(await kinds()).toHaveLength(1)
    expect(scene.node.transactions()).toEqual([])
    raiseBaseFee(gwei)
    await scene.confirm({ chain })
    scene.node.mine()
    expect(scene.node.transactions()).toMatchObject([{ hash, from: publisher }])
    await scene.finish({ complete: 2 })
  })

  describe('a clock that was a year ahead is corrected', () => {
    const YEAR_MS = 365 * 86_400_000

    test('resends a transaction that a node dropped', async () => {
      scene.pass(YEAR_MS)
      const hash = await scene.send(1)
      scene.pass(-YEAR_MS)
      scene.node.dropTransaction(hash)
      await scene.confirm()
      expect(scene.node.mempool()).toMatchObject([{ nonce: 0 }])
      await scene.finish({ complete: 1 })
    })

    test('raises a stuck transaction once', async () => {
      scene.pass(YEAR_MS)
      await scene.send(1)
      scene.pass(-YEAR_MS)
      raiseBaseFee(50n * gwei)
      await scene.confirm()
      await scene.confirm()
      expect(await kinds()).toHaveLength(2)
      await scene.finish({ complete: 1 })
    })

    test('abandons a nonce that another sender used after half an hour of the correct clock', async () => {
      await scene.claimOnly(1)
      await scene.node.sendFromElsewhere({ privateKey: publisherKey })
      scene.pass(YEAR_MS)
      await scene.confirm()
      scene.pass(-YEAR_MS)
      await scene.confirm()
      scene.node.mine(40)
      scene.pass(1_799_999)
      await scene.confirm()
      expect(await scene.publications()).toMatchObject([{ status: 'pending' }])
      scene.pass(1)
      await scene.confirm()
      expect(await scene.publications()).toMatchObject([{ status: 'lost' }])
    })

    test('searches for events again', async () => {
      await scene.send(2)
      scene.node.setPublisher(stranger)
      scene.node.mine(20)
      scene.pass(YEAR_MS)
      scene.node.setFault('error', { methods: ['eth_getLogs'] })
      await scene.confirm()
      scene.node.setFault()
      scene.pass(-YEAR_MS)
      await scene.confirm()
      expect(await scene.publications()).toMatchObject([{ status: 'reverted' }])
    })
  })

  test('does not resend or raise a transaction that a worker with a slightly fast clock just sent', async () => {
    scene.pass(5_000)
    await scene.send(1)
    scene.pass(-5_000)
    const sends = scene.node.requests.eth_sendRawTransaction
    await scene.confirm()
    expect(scene.node.requests.eth_sendRawTransaction).toBe(sends)
    expect(await kinds()).toHaveLength(1)
  })

  test('bids at most four times the market if a node finds every fee too low', async () => {
    await scene.claimOnly(1)
    const { chain } = scene.deps
    const send = () => Promise.reject(new ChainError('underpriced'))
    for (let round = 0; round < 40; round++) await scene.confirm({ chain: { ...chain, send } })
    const [publication] = await scene.publications()
    expect(publication?.transactions.length).toBeLessThan(15)
    expect(publication?.transactions.at(-1)?.maxFeePerGas).toBeLessThanOrEqual(4n * 3n * gwei)
    await scene.finish({ complete: 1 })
  })

  describe('a node that lies about fees and withholds transactions: never bids above the limit', () => {
    /** Reports twice the base fee and a tip of one gwei as the market. */
    const limit = 10_000n * gwei
    const highest = async () => (await scene.publications())[0]?.transactions.at(-1)?.maxFeePerGas ?? 0n

    test('raises a stuck transaction up to it, never cancels it above it, and waits for an honest node', async () => {
      raiseBaseFee(2_500n * gwei)
      await scene.send(1)
      scene.node.holdMempool(true)
      for (let minute = 0; minute < 20; minute++) {
        scene.pass(60_000)
        expect(await scene.confirm()).toEqual({ open: 1 })
      }
      expect(await highest()).toBeGreaterThan((limit * 8n) / 9n)
      expect(await highest()).toBeLessThanOrEqual(limit)
      const before = await kinds()
      await scene.passDeadline()
      expect(await scene.confirm()).toEqual({ open: 1 })
      expect(await kinds()).toEqual(before)
      raiseBaseFee(gwei)
      scene.node.holdMempool(false)
      await scene.finish({ complete: 1 })
    })

    test('creates a cancel below it and raises it no further', async () => {
      raiseBaseFee(4_400n * gwei)
      await scene.send(1)
      scene.node.holdMempool(true)
      await scene.passDeadline()
      for (let minute = 0; minute < 5; minute++) {
        expect(await scene.confirm()).toEqual({ open: 1 })
        scene.pass(60_000)
      }
      expect(await kinds()).toEqual([
        ['publish', true],
        ['cancel', true],
      ])
      expect(await highest()).toBeLessThanOrEqual(limit)
    })

    test('even if it finds every fee too low', async () => {
      raiseBaseFee(4_990n * gwei)
      await scene.claimOnly(1)
      const { chain } = scene.deps
      const send = () => Promise.reject(new ChainError('underpriced'))
      for (let round = 0; round < 5; round++)
        expect(await scene.confirm({ chain: { ...chain, send } })).toEqual({ open: 1 })
      expect(await kinds()).toEqual([['publish', false]])
      await scene.finish({ complete: 1 })
    })
  })

  test('raises an unsent transaction below the market, for any error message of the node', async () => {
    await scene.claimOnly(1)
    raiseBaseFee(50n * gwei)
    const { chain } = scene.deps
    const send = () => Promise.reject(new ChainError('transaction_refused'))
    scene.pass(59_999)
    await scene.confirm({ chain: { ...chain, send } })
    expect(await kinds()).toHaveLength(1)
    scene.pass(1)
    await scene.confirm()
    expect(await kinds()).toEqual([
      ['publish', false],
      ['publish', true],
    ])
    await scene.finish({ complete: 1 })
  })
})
