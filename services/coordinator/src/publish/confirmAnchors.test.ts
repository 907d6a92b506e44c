import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AnchorScene, createAnchorScene, toIdOf } from '../../test/publish/anchoring.ts'
import {
  Crash,
  codeOf,
  createCrash,
  createFreeze,
  DEADLINE_MS,
  gwei,
  publisher,
  publisherKey,
  SEND,
  startTestPublishing,
  stranger,
  strangerKey,
  type TestPublishing,
} from '../../test/publish/publishing.ts'
import type { TestLog } from '../../test/store/logs.ts'
import type { Chain } from './chain/viemChain.ts'
import { createObservations, MIN_OBSERVED_MS } from './confirmRun.ts'

describe('confirming checkpoints', () => {
  let publishing: TestPublishing
  let scene: AnchorScene
  let log: TestLog
  beforeAll(async () => {
    publishing = await startTestPublishing()
  })
  afterAll(() => publishing.stop())
  beforeEach(() => restage({}))

  async function restage(options: Parameters<typeof createAnchorScene>[1]) {
    scene = await createAnchorScene(publishing, options)
    log = scene.createLog()
  }
  const statuses = async () => (await scene.anchors()).map(({ size, status }) => [size, status])
  /** Claims without sending, like a process that dies in between. */
  async function claimOnly(count = 1) {
    await scene.sign(log, count)
    scene.node.setFault('down', SEND)
    await scene.publish()
    scene.node.setFault()
  }
  /** Two checkpoints, the first in a block and the second after it. */
  async function sendTwo() {
    await scene.send(log, 2)
    scene.node.mine()
    await scene.send(log, 2)
  }

  describe('finality', () => {
    test('completes no proof before it, with any number of confirmations', async () => {
      await restage({ confirmations: 1 })
      await scene.send(log)
      for (let depth = 0; depth < 8; depth++) {
        scene.node.mine()
        expect(await scene.confirm()).toEqual({ open: 1 })
      }
      expect(await scene.count()).toEqual({ pending_onchain: 1 })
      scene.node.mine()
      expect(await scene.confirm()).toEqual({ open: 0 })
    })

    test('needs the configured confirmations too, if the chain is final at once', async () => {
      await restage({ confirmations: 6, finalityDepth: 0 })
      await scene.send(log)
      scene.node.mine(5)
      expect(await scene.confirm()).toEqual({ open: 1 })
      scene.node.mine()
      expect(await scene.confirm()).toEqual({ open: 0 })
    })

    test('reads nothing about a checkpoint in a block until the block is final', async () => {
      await scene.send(log)
      scene.node.mine()
      await scene.confirm()
      const { eth_getTransactionReceipt: before } = scene.node.requests
      for (let block = 0; block < 7; block++) {
        scene.node.mine()
        await scene.confirm()
      }
      expect(scene.node.requests.eth_getTransactionReceipt).toBe(before)
    })
  })

  describe('a reorganisation', () => {
    const cases = [1, 2, 4, 8].flatMap((depth) => (['all', 'none'] as const).map((keep) => ({ depth, keep })))
    test.each(cases)('of $depth blocks that keeps $keep, of one checkpoint', async ({ depth, keep }) => {
      await scene.send(log, 2)
      scene.node.mine(depth)
      await scene.confirm()
      scene.node.reorg(depth, { keep })
      expect(scene.node.checkpoints()).toEqual([])
      await scene.confirm()
      await scene.sign(log)
      await scene.publish()
      await scene.finish({ complete: 3 })
      expect(await statuses()).toEqual([
        [5, 'final'],
        [7, 'final'],
      ])
      expect(scene.node.transactions()).toHaveLength(2)
    })

    test.each(cases)('of $depth blocks that keeps $keep, of two checkpoints', async ({ depth, keep }) => {
      await sendTwo()
      scene.node.mine()
      await scene.confirm()
      scene.node.mine(Math.max(0, depth - 2))
      // A depth of one removes only the second.
      scene.node.reorg(depth, { keep })
      await scene.sign(log)
      await scene.publish()
      scene.pass(15_000)
      await scene.finish({ complete: 5 })
      expect(scene.node.checkpoints().map(({ size }) => size)).toEqual([5, 9, 11])
    })

    test('that moves a checkpoint to a later block, unseen, delays its proofs', async () => {
      await scene.send(log)
      scene.node.mine()
      await scene.confirm()
      scene.node.mine(6)
      scene.node.reorg(7)
      scene.node.mine()
      await scene.confirm()
      scene.node.mine()
      // The old block would be final now.
      expect(await scene.confirm()).toEqual({ open: 1 })
      expect(await scene.count()).toEqual({ pending_onchain: 1 })
      await scene.finish({ complete: 1 })
    })

    test('that replaces a checkpoint by another sender’s transaction publishes its proofs once', async () => {
      await scene.send(log, 2)
      scene.node.mine()
      await scene.confirm()
      scene.node.reorg(1, { keep: 'none' })
      await scene.node.sendFromElsewhere({ privateKey: publisherKey })
      await scene.finish({ complete: 2 })
      expect(await statuses()).toEqual([
        [5, 'lost'],
        [5, 'final'],
      ])
    })
  })

  describe('a checkpoint that is not mined', () => {
    test('gets higher fees with the same checkpoint during a gas spike', async () => {
      await scene.send(log, 2)
      const [original] = scene.node.mempool()
      scene.node.setBaseFee(50n * gwei)
      scene.node.mine()
      scene.pass(60_000)
      await scene.confirm()
      const [raised] = scene.node.mempool()
      expect(raised).toMatchObject({ nonce: 0, data: original?.data, to: scene.node.logWitness })
      expect(raised?.maxFeePerGas).toBeGreaterThan(100n * gwei)
      await scene.finish({ complete: 2 })
      expect(scene.node.transactions()).toHaveLength(1)
    })

    test('is sent again if the node dropped it', async () => {
      const hash = await scene.send(log)
      scene.node.dropTransaction(hash)
      scene.pass(15_000)
      await scene.confirm()
      expect(scene.node.mempool().map((one) => one.hash)).toEqual([hash])
      await scene.finish({ complete: 1 })
    })

    test('is cancelled after the deadline: the next one starts before it and lists its proofs', async () => {
      await scene.send(log, 2)
      scene.node.holdMempool(true)
      await scene.passDeadline()
      await scene.confirm()
      await scene.sign(log)
      expect(await scene.publish()).toMatchObject({ waitMs: 2_000 })
      scene.node.holdMempool(false)
      await scene.finish({ complete: 3 })
      expect(await statuses()).toEqual([
        [5, 'cancelled'],
        [7, 'final'],
      ])
      expect(scene.node.checkpoints().map(({ size }) => size)).toEqual([7])
    })

    test('is cancelled while the next one waits: that one reverts, and the proofs of both are published once', async () => {
      await scene.send(log, 2)
      scene.pass(DEADLINE_MS - MIN_OBSERVED_MS)
      scene.node.mine()
      await scene.send(log, 2)
      scene.node.reorg(1, { keep: 'none' })
      scene.node.holdMempool(true)
      await scene.confirm()
      scene.pass(MIN_OBSERVED_MS)
      await scene.confirm()
      scene.node.holdMempool(false)
      scene.node.mine()
      expect(scene.node.transactions().map(({ to, isSuccess }) => [to, isSuccess])).toEqual([
        [publisher, true],
        [scene.node.logWitness, false],
      ])
      await scene.finish({ complete: 4 })
      expect(scene.node.checkpoints().map(({ size }) => size)).toEqual([9])
    })

    test('is lost if another sender used its nonce, and its proofs are published once', async () => {
      await claimOnly(3)
      await scene.node.sendFromElsewhere({ privateKey: publisherKey })
      await scene.sign(log)
      await scene.finish({ complete: 4 })
      expect(await statuses()).toEqual([
        [7, 'lost'],
        [9, 'final'],
      ])
    })
  })

  describe('a checkpoint that reverts', () => {
    test('because the publisher was rotated: its proofs wait together for the new key', async () => {
      await scene.send(log, 3)
      scene.node.registerLog(toIdOf(log), stranger)
      scene.node.mine(9)
      await scene.confirm()
      expect(await statuses()).toEqual([[7, 'reverted']])
      expect(await codeOf(scene.publish())).toBe('log_not_registered')
      expect(await scene.count()).toEqual({ pending_onchain: 3 })
      scene.node.setPublisher(stranger)
      scene.deps.chain = scene.connect({ privateKey: strangerKey })
      await scene.finish({ complete: 3 })
      expect(scene.node.checkpoints()).toHaveLength(1)
    })

    test('not before the revert is final', async () => {
      await scene.send(log)
      scene.node.registerLog(toIdOf(log), stranger)
      scene.node.mine(8)
      await scene.confirm()
      expect(await statuses()).toEqual([[3, 'pending']])
      scene.node.reorg(8)
      scene.node.registerLog(toIdOf(log))
      await scene.finish({ complete: 1 })
      expect(scene.node.transactions()).toHaveLength(1)
    })

    test('because another sender’s is larger: its proofs are published as events if the log has not grown', async () => {
      await scene.send(log, 2)
      await scene.sign(log, 1, { isPinned: false })
      await scene.advanceElsewhere(log, 7)
      await scene.finish({ complete: 2, pending_pin: 1 })
      expect([scene.node.events().length, (await statuses()).length]).toEqual([2, 1])
    })

    test('because another sender’s is larger: its proofs are listed in the next one', async () => {
      await scene.send(log, 2)
      await scene.sign(log, 1, { isPinned: false })
      await scene.advanceElsewhere(log, 7)
      scene.node.mine(12)
      await scene.confirm()
      await scene.sign(log, 2)
      await scene.finish({ complete: 4, pending_pin: 1 })
      expect(scene.node.events()).toEqual([])
      expect(scene.node.checkpoints().map(({ size }) => size)).toEqual([7, 11])
    })

    test('because another sender has another tree: stops this log', async () => {
      await scene.send(log, 2)
      await scene.advanceElsewhere(log, 4, new Uint8Array(32))
      await scene.live(20)
      expect(await codeOf(scene.publish())).toBe('anchor_conflict')
      expect(await scene.count()).toEqual({ pending_onchain: 2 })
      expect(scene.node.transactions()).toHaveLength(2)
    })
  })

  test('publishes proofs once if another sender published the same checkpoint, for which the contract emits no event', async () => {
    await scene.send(log, 2)
    await scene.advanceElsewhere(log, 5)
    scene.node.mine(12)
    await scene.confirm()
    expect(await statuses()).toEqual([[5, 'reverted']])
    await scene.sign(log)
    await scene.finish({ complete: 3 })
    expect(scene.node.checkpoints().map(({ size }) => size)).toEqual([5, 7])
  })

  describe('a node', () => {
    test('that reports a checkpoint as mined in a block that does not exist completes nothing', async () => {
      await restage({ confirmations: 1 })
      await scene.send(log)
      scene.node.holdMempool(true)
      scene.node.setFault('lies-mined')
      scene.node.mine(20)
      await scene.confirm()
      expect(await scene.count()).toEqual({ pending_onchain: 1 })
      scene.node.setFault()
      scene.node.holdMempool(false)
      await scene.finish({ complete: 1 })
    })

    test('that invents later blocks delays a checkpoint only while it lies', async () => {
      await scene.send(log)
      scene.node.mine()
      const { chain } = scene.deps
      const blockNumber = 2 ** 40
      const lying: Chain = {
        ...chain,
        getHead: async () => ({ number: blockNumber, finalized: 0 }),
        getBlockHash: async () => scene.node.head.hash,
        async getReceipt(...asked) {
          const receipt = await chain.getReceipt(...asked)
          return receipt && { ...receipt, blockNumber }
        },
      }
      expect(await scene.confirm({ chain: lying })).toEqual({ open: 1 })
      await scene.finish({ complete: 1 })
    })

    test('without receipts never leads to a second checkpoint', async () => {
      await scene.send(log, 2)
      scene.node.mine()
      scene.node.setFault('no-receipts')
      for (let round = 0; round < 40; round++) {
        await scene.live(1)
        scene.pass(MIN_OBSERVED_MS / 20)
      }
      expect(await statuses()).toEqual([[5, 'pending']])
      scene.node.setFault()
      await scene.finish({ complete: 2 })
      expect(scene.node.transactions()).toHaveLength(1)
    })

    test('that forgets a mined checkpoint but has its event never leads to a second one', async () => {
      const hash = await scene.send(log, 2)
      scene.node.mine()
      const remember = scene.node.forget(hash)
      for (let round = 0; round < 60; round++) {
        await scene.live(1)
        scene.pass(MIN_OBSERVED_MS / 20)
      }
      expect(await statuses()).toEqual([[5, 'pending']])
      expect(scene.lines).toContainEqual({
        msg: 'Found events of a publication whose transaction is missing',
        hash,
        count: 1,
      })
      remember()
      await scene.finish({ complete: 2 })
      expect(scene.node.transactions()).toHaveLength(1)
    })

    test.each([
      ['reverted', { isSuccess: false, checkpoints: [] }],
      ['mined without an event', { checkpoints: [] }],
    ])('that reports it as %s releases no proof while the event is on the chain', async (_, lie) => {
      await scene.send(log, 2)
      scene.node.mine(20)
      const { chain } = scene.deps
      const lying: Chain = {
        ...chain,
        async getReceipt(...asked) {
          const receipt = await chain.getReceipt(...asked)
          return receipt && { ...receipt, ...lie }
        },
      }
      for (let round = 0; round < 5; round++) {
        await scene.confirm({ chain: lying })
        scene.pass(MIN_OBSERVED_MS)
      }
      expect(await statuses()).toEqual([[5, 'pending']])
      await scene.finish({ complete: 2 })
    })

    test('that serves another log’s checkpoint completes nothing', async () => {
      await scene.send(log, 2)
      scene.node.mine(20)
      const { chain } = scene.deps
      const lying: Chain = {
        ...chain,
        async getReceipt(...asked) {
          const receipt = await chain.getReceipt(...asked)
          const checkpoints = receipt?.checkpoints.map((event) => ({
            ...event,
            block: `0x${'22'.repeat(32)}` as const,
          }))
          return receipt && { ...receipt, checkpoints: checkpoints ?? [] }
        },
      }
      await scene.confirm({ chain: lying })
      expect(await scene.count()).toEqual({ pending_onchain: 2 })
      await scene.finish({ complete: 2 })
    })
  })

  test('confirms checkpoints of another LogWitness and of another account', async () => {
    await scene.send(log, 2)
    const { target } = scene.anchoring
    scene.anchoring.target = { ...target, contract: stranger }
    scene.node.setPublisher(stranger)
    scene.deps.chain = scene.connect({ privateKey: strangerKey })
    await scene.finish({ complete: 2 })
  })

  test('a frozen worker that cancels late changes nothing', async () => {
    await scene.send(log, 2)
    await scene.passDeadline()
    const { chain, frozen, wake } = createFreeze(scene.deps.chain)
    const running = scene.confirm({ chain })
    await frozen
    scene.node.mine(20)
    await scene.confirm({ observations: createObservations() })
    expect(await scene.count()).toEqual({ complete: 2 })
    wake()
    await running
    await scene.finish({ complete: 2 })
  })

  describe('after a crash at any call, the next run publishes each proof once', () => {
    const stories: Record<string, { prepare: () => Promise<unknown>; end: Record<string, number> }> = {
      'to be sent': { prepare: () => claimOnly(2), end: { complete: 2 } },
      'to be completed': {
        async prepare() {
          await sendTwo()
          scene.node.mine(10)
        },
        end: { complete: 4 },
      },
      'to be cancelled': {
        async prepare() {
          await claimOnly(2)
          await scene.passDeadline()
        },
        end: { complete: 2 },
      },
      'to be released': {
        async prepare() {
          await scene.send(log, 3)
          await scene.advanceElsewhere(log, 7)
          scene.node.mine(10)
          await scene.sign(log)
        },
        end: { complete: 4 },
      },
    }
    const cases = Object.keys(stories).flatMap((story) =>
      (['before', 'after'] as const).map((when) => [story, when] as const),
    )
    test.each(cases)('%s, %s the call', async (name, when) => {
      const story = stories[name]
      if (story === undefined) throw new Error('no such story')
      for (let at = 1; ; at++) {
        await restage({})
        await story.prepare()
        const crash = createCrash(at, when)
        const { store, chain } = scene.deps
        const died = await scene.confirm({ store: crash.wrap(store), chain: crash.wrap(chain) }).then(
          () => false,
          (error: unknown) => error instanceof Crash,
        )
        expect(died).toBe(!crash.isOver)
        await scene.finish(story.end)
        if (died) continue
        expect(at).toBeGreaterThan(5)
        break
      }
    })
  })
})
