import type { Hex } from '@countersign/protocol'
import type { FakeChainFault } from '@countersign/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  Crash,
  codeOf,
  createCrash,
  createFreeze,
  createScene,
  DEADLINE_MS,
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
import { PUBLISH_QUEUE } from '../store/jobs.ts'
import { ChainError } from './chain/chainError.ts'
import { encodePublish } from './chain/contract.ts'
import type { Chain } from './chain/viemChain.ts'
import { createObservations, MIN_OBSERVED_MS } from './confirmRun.ts'

const depths = [1, 2, 3, 4, 5]
const keeps = ['all', 'none'] as const
const reorgs = depths.flatMap((depth) => keeps.map((keep) => ({ depth, keep })))

describe('confirming', () => {
  let publishing: TestPublishing
  let scene: Scene
  beforeAll(async () => {
    publishing = await startTestPublishing()
  })
  afterAll(() => publishing.stop())
  beforeEach(async () => {
    scene = await createScene(publishing)
  })

  async function restage(options: Parameters<typeof createScene>[1]) {
    scene = await createScene(publishing, options)
  }
  const claimOnly = (count: number) => scene.claimOnly(count)
  const send = (count: number) => scene.send(count)

  test('completes after the configured confirmations, and finishes when the chain reports finality', async () => {
    await send(2)
    for (let depth = 1; depth < 6; depth++) {
      scene.node.mine()
      expect(await scene.confirm()).toEqual({ open: 1 })
      expect(await scene.count()).toEqual({ pending_onchain: 2 })
    }
    scene.node.mine()
    expect(await scene.confirm()).toEqual({ open: 1 })
    expect(await scene.count()).toEqual({ complete: 2 })
    scene.node.mine(2)
    expect(await scene.confirm()).toEqual({ open: 1 })
    scene.node.mine()
    expect(await scene.confirm()).toEqual({ open: 0 })
    await scene.assertEvents()
  })

  test('uses depth if the chain reports no finality', async () => {
    await restage({ finalityDepth: 'none', confirmations: 2 })
    await send(1)
    scene.node.mine(64)
    expect(await scene.confirm()).toEqual({ open: 1 })
    expect(await scene.confirm()).toEqual({ open: 1 })
    scene.node.mine()
    expect(await scene.confirm()).toEqual({ open: 0 })
  })

  const faults: FakeChainFault[] = ['down', 'slow', 'error', 'garbage', 'truncated', 'oversized']
  test.each(faults)('changes nothing and retries the job if the node is %s', async (fault) => {
    await send(2)
    scene.node.mine(7)
    scene.node.setFault(fault, { delayMs: 5_000 })
    expect(await codeOf(scene.confirm({ chain: scene.connect({ timeoutMs: 500 }) }))).toBe('chain_unavailable')
    expect(await scene.count()).toEqual({ pending_onchain: 2 })
    scene.node.setFault()
    await scene.finish({ complete: 2 })
  })

  test('ignores a node of another chain', async () => {
    await send(1)
    scene.node.mine(40)
    const { chain } = scene.deps
    const foreign: Chain = { ...scene.connect({ chainId: 1 }), chainId: chain.chainId }
    expect(await codeOf(scene.confirm({ chain: foreign }))).toBe('chain_mismatch')
    expect(await scene.count()).toEqual({ pending_onchain: 1 })
  })

  test('continues after a publication that cannot be read, and logs it', async () => {
    const first = await send(1)
    await send(1)
    scene.node.mine(7)
    const { chain } = scene.deps
    const partial: Chain = {
      ...chain,
      getReceipt: (hash) =>
        hash === first ? Promise.reject(new ChainError('chain_unavailable')) : chain.getReceipt(hash),
    }
    expect(await codeOf(scene.confirm({ chain: partial }))).toBe('chain_unavailable')
    expect((await scene.publications()).map(({ status }) => status)).toEqual(['pending', 'confirmed'])
    await scene.finish({ complete: 2 })
  })

  test('ignores a receipt whose block does not exist', async () => {
    await restage({ confirmations: 1 })
    await send(2)
    scene.node.holdMempool(true)
    scene.node.setFault('lies-mined')
    scene.node.mine(10)
    await scene.confirm()
    expect(await scene.count()).toEqual({ pending_onchain: 2 })
    scene.node.setFault()
    scene.node.holdMempool(false)
    await scene.finish({ complete: 2 })
  })

  test('fails a publication whose receipt lacks its events, and never publishes it again', async () => {
    await send(2)
    scene.node.mine(30)
    const { chain } = scene.deps
    const blind: Chain = {
      ...chain,
      async getReceipt(hash) {
        const receipt = await chain.getReceipt(hash)
        return receipt && { ...receipt, events: receipt.events.slice(1) }
      },
    }
    await scene.confirm({ chain: blind })
    expect(await scene.count()).toEqual({ pending_onchain: 2 })
    scene.pass(DEADLINE_MS)
    await scene.confirm({ chain: blind })
    // One observation is not enough: the deadline can pass while no worker runs, and a clock can be ahead.
    expect(await scene.count()).toEqual({ pending_onchain: 2 })
    scene.pass(MIN_OBSERVED_MS)
    await scene.confirm({ chain: blind })
    expect(await scene.proofs()).toMatchObject([
      { status: 'onchain_failed', failure: 'publish_unconfirmed' },
      { status: 'onchain_failed', failure: 'publish_unconfirmed' },
    ])
    await scene.live(10)
    expect(scene.node.events()).toHaveLength(2)
  })

  test.each(reorgs)('a reorganisation of $depth before confirmation, keeping $keep', async ({ depth, keep }) => {
    await send(3)
    scene.node.mine(depth)
    await scene.confirm()
    scene.node.reorg(depth, { keep })
    expect(scene.node.events()).toEqual([])
    await scene.finish({ complete: 3 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  test.each(reorgs)('a reorganisation of $depth after complete, keeping $keep', async ({ depth, keep }) => {
    await restage({ confirmations: 1 })
    const hash = await send(3)
    scene.node.mine()
    await scene.confirm()
    expect(await scene.count()).toEqual({ complete: 3 })
    await scene.assertEvents()
    scene.node.mine(depth - 1)
    // Seen in its block by a run that only watches.
    await scene.confirm()
    scene.node.reorg(depth, { keep })
    scene.pass(15_000)
    await scene.confirm()
    expect(scene.node.mempool().map((item) => item.hash)).toEqual([hash])
    expect(await scene.count()).toEqual({ complete: 3 })
    scene.node.mine()
    await scene.confirm()
    await scene.assertEvents()
    await scene.finish({ complete: 3 })
    expect((await scene.proofs()).map(({ onchainTxHash }) => onchainTxHash)).toEqual([hash, hash, hash])
  })

  test('reads a watched publication again only if its block changed', async () => {
    await restage({ confirmations: 1 })
    const [first, second] = [await send(1), await send(2)]
    scene.node.mine()
    await scene.confirm()
    const asked: Hex[] = []
    const { chain } = scene.deps
    const watching: Chain = {
      ...chain,
      getReceipt(hash) {
        asked.push(hash)
        return chain.getReceipt(hash)
      },
    }
    await scene.confirm({ chain: watching })
    expect(asked).toEqual([first, second])
    scene.node.mine()
    await scene.confirm({ chain: watching })
    expect(asked).toEqual([first, second])
    scene.node.reorg(2, { keep: 'all' })
    scene.node.mine()
    await scene.confirm({ chain: watching })
    expect(asked.slice(2)).toEqual([first, second])
    await scene.assertEvents()
    await scene.finish({ complete: 3 })
  })

  test('discards its observations if another worker moved the publication to another block', async () => {
    await restage({ confirmations: 1 })
    await send(1)
    scene.node.mine()
    await scene.confirm()
    await scene.confirm()
    scene.node.reorg(1)
    scene.node.mine(2)
    const other = { observations: createObservations() }
    await scene.confirm(other)
    await scene.confirm(other)
    await scene.assertEvents()
    await scene.confirm()
    await scene.assertEvents()
    await scene.finish({ complete: 1 })
  })

  test('replaces a complete publication that dropped out of the chain during a gas spike', async () => {
    await restage({ confirmations: 1 })
    const hash = await send(1)
    scene.node.mine()
    await scene.confirm()
    scene.node.reorg(1)
    scene.node.setBaseFee(100n * gwei)
    scene.pass(60_000)
    await scene.finish({ complete: 1 })
    expect((await scene.proofs())[0]?.onchainTxHash).not.toBe(hash)
  })

  test('recovers from two reorganisations in a row', async () => {
    await send(2)
    scene.node.mine(3)
    scene.node.reorg(3)
    await scene.live(2)
    scene.node.reorg(4, { keep: 'none' })
    await scene.finish({ complete: 2 })
  })

  test('resends the same bytes of a dropped transaction, but not too often', async () => {
    const hash = await send(2)
    scene.node.dropTransaction(hash)
    scene.pass(14_999)
    await scene.confirm()
    expect(scene.node.mempool()).toEqual([])
    scene.pass(1)
    await scene.confirm()
    expect(scene.node.mempool().map((item) => item.hash)).toEqual([hash])
    const sends = scene.node.requests.eth_sendRawTransaction
    await scene.confirm()
    expect(scene.node.requests.eth_sendRawTransaction).toBe(sends)
    await scene.finish({ complete: 2 })
  })

  test('accepts the original if it is mined after a replacement was stored', async () => {
    const hash = await send(2)
    scene.pass(60_000)
    scene.node.setFault('down', SEND)
    await scene.confirm()
    scene.node.setFault()
    expect(await scene.publications()).toMatchObject([{ transactions: [{ hash }, { kind: 'publish', isSent: false }] }])
    scene.node.mine()
    await scene.finish({ complete: 2 })
    expect((await scene.proofs())[0]?.onchainTxHash).toBe(hash)
  })

  test('raises fees with the same nonce and call during a gas spike', async () => {
    const hash = await send(2)
    const [original] = scene.node.mempool()
    scene.node.setBaseFee(50n * gwei)
    scene.node.mine()
    scene.pass(59_999)
    await scene.confirm()
    expect(scene.node.mempool().map((item) => item.hash)).toEqual([hash])
    scene.pass(1)
    await scene.confirm()
    const [bumped] = scene.node.mempool()
    expect(bumped).toMatchObject({ nonce: 0, data: original?.data, gas: original?.gas, to: original?.to })
    expect(bumped?.maxFeePerGas).toBeGreaterThan(100n * gwei)
    await scene.finish({ complete: 2 })
    expect((await scene.proofs())[0]?.onchainTxHash).toBe(bumped?.hash)
    expect(scene.node.transactions()).toHaveLength(1)
  })

  test('raises all waiting publications at once during a gas spike', async () => {
    for (let count = 0; count < 3; count++) await send(1)
    scene.node.setBaseFee(50n * gwei)
    scene.node.mine()
    scene.pass(60_000)
    await scene.confirm()
    scene.node.mine()
    expect(scene.node.events()).toHaveLength(3)
    await scene.finish({ complete: 3 })
  })

  test('does not raise fees of a publication that waits for an earlier nonce', async () => {
    await send(1)
    await send(1)
    scene.node.holdMempool(true)
    scene.pass(60_000)
    await scene.confirm()
    expect((await scene.publications()).map(({ transactions }) => transactions.length)).toEqual([2, 1])
    scene.node.holdMempool(false)
    await scene.finish({ complete: 2 })
  })

  test('bids at most four times the market', async () => {
    await send(1)
    scene.node.holdMempool(true)
    for (let minute = 0; minute < 40; minute++) {
      scene.pass(60_000)
      await scene.confirm()
    }
    const [publication] = await scene.publications()
    const market = 3n * gwei
    expect(publication?.transactions.length).toBeLessThan(15)
    expect(publication?.transactions.at(-1)?.maxFeePerGas).toBeLessThanOrEqual(4n * market)
    scene.node.holdMempool(false)
    await scene.finish({ complete: 1 })
  })

  test('resends the earlier transaction first if the node dropped it', async () => {
    const dropped = await send(1)
    await send(1)
    scene.node.dropTransaction(dropped)
    scene.node.mine(2)
    expect(scene.node.mempool().map(({ nonce }) => nonce)).toEqual([1])
    expect(scene.node.events()).toEqual([])
    scene.pass(15_000)
    await scene.confirm()
    expect(scene.node.mempool().map(({ nonce }) => nonce)).toEqual([1, 0])
    scene.node.mine()
    expect(scene.node.transactions().map(({ nonce }) => nonce)).toEqual([0, 1])
    await scene.finish({ complete: 2 })
  })

  test('sends unsent transactions in nonce order, and stops if the node does not answer', async () => {
    for (let count = 0; count < 3; count++) await claimOnly(1)
    scene.node.setFault('down', { ...SEND, count: 1 })
    await scene.confirm()
    expect(scene.node.mempool()).toEqual([])
    await scene.confirm()
    expect(scene.node.mempool().map(({ nonce }) => nonce)).toEqual([0, 1, 2])
    await scene.finish({ complete: 3 })
  })

  const countSends = () => scene.node.requests.eth_sendRawTransaction ?? 0

  test('tries once per run if the account cannot pay, and continues with funds', async () => {
    for (let count = 0; count < 3; count++) await claimOnly(1)
    scene.node.setBalance(publisher, 1n)
    const before = countSends()
    await scene.confirm()
    expect(countSends() - before).toBe(1)
    scene.node.setBalance(publisher, 10n ** 18n)
    await scene.confirm()
    expect(scene.node.mempool().map(({ nonce }) => nonce)).toEqual([0, 1, 2])
    await scene.finish({ complete: 3 })
  })

  test('continues with the current account if an earlier one cannot pay', async () => {
    await claimOnly(1)
    scene.node.setPublisher(stranger)
    scene.deps.chain = scene.connect({ privateKey: strangerKey })
    await claimOnly(1)
    scene.node.setBalance(publisher, 1n)
    await scene.confirm()
    expect(scene.node.mempool()).toMatchObject([{ from: stranger }])
  })

  test('sends later transactions if a node checks the balance before a used nonce', async () => {
    await claimOnly(1)
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    await claimOnly(1)
    const { chain } = scene.deps
    const [first] = await scene.deps.store.findOpen(chain.chainId)
    const poor: Chain = {
      ...chain,
      send: (raw) =>
        raw === first?.transactions[0]?.raw ? Promise.reject(new ChainError('insufficient_funds')) : chain.send(raw),
    }
    await scene.confirm({ chain: poor })
    expect(scene.node.mempool()).toMatchObject([{ nonce: 1 }])
  })

  test('checks pending publications before complete ones', async () => {
    await send(1)
    scene.node.mine(6)
    await scene.confirm()
    const waiting = await send(1)
    scene.node.mine()
    const { chain } = scene.deps
    const asked: string[] = []
    const watched: Chain = {
      ...chain,
      getReceipt: (hash) => chain.getReceipt(hash).finally(() => asked.push(hash)),
      getBlockHash: (number) => chain.getBlockHash(number).finally(() => asked.push(`block ${number}`)),
    }
    const observations = createObservations()
    await scene.confirm({ chain: watched, observations })
    await scene.confirm({ chain: watched, observations })
    expect(asked.slice(-3)).toEqual([waiting, 'block 7', 'block 1'])
  })

  test('a nonce used by another sender: lost only after many blocks and half an hour, then published under another', async () => {
    await claimOnly(3)
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    await scene.confirm()
    scene.pass(MIN_OBSERVED_MS - 1)
    for (let block = 0; block < 17; block++) {
      scene.node.mine()
      await scene.confirm()
      expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 3 }])
    }
    scene.node.mine()
    await scene.confirm()
    expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 3 }])
    expect(await scene.countJobs(PUBLISH_QUEUE)).toBe(0)
    scene.pass(1)
    await scene.confirm()
    expect(await scene.publications()).toMatchObject([{ status: 'lost', proofs: 0 }])
    expect(await scene.countJobs(PUBLISH_QUEUE)).toBe(1)
    await scene.finish({ complete: 3 })
    expect((await scene.publications()).map(({ nonce, status }) => [nonce, status])).toEqual([
      [0, 'lost'],
      [1, 'final'],
    ])
  })

  test('handles a nonce that another sender used before a waiting publication', async () => {
    await send(2)
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    await scene.finish({ complete: 2 })
    expect(scene.node.transactions()).toHaveLength(2)
  })

  test('waits longer after a restart, never shorter', async () => {
    await claimOnly(1)
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    for (let block = 0; block < 40; block++) {
      await scene.confirm({ observations: createObservations() })
      scene.node.mine()
    }
    expect(await scene.publications()).toMatchObject([{ status: 'pending' }])
    await scene.finish({ complete: 1 })
  })

  test('mines our transaction if a reorganisation removes another sender’s', async () => {
    await claimOnly(1)
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    await scene.confirm()
    scene.node.mine(4)
    scene.node.reorg(5, { keep: 'none' })
    await scene.finish({ complete: 1 })
    expect(await scene.publications()).toMatchObject([{ nonce: 0, status: 'final' }])
  })

  test.each([0, DEADLINE_MS])('a node without receipts never leads to a second event, %d ms on', async (durationMs) => {
    await send(3)
    scene.node.mine()
    scene.node.setFault('no-receipts')
    scene.pass(durationMs)
    for (let block = 0; block < 60; block++) {
      await scene.publish()
      await scene.confirm()
      scene.node.mine()
      scene.pass(12_000)
    }
    expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 3 }])
    scene.node.setFault()
    await scene.finish({ complete: 3 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  describe('publishes one event if a node forgets a mined publication and its receipt', () => {
    const hour = 3_600_000
    test.each([
      { what: 'for 12 s over 20 blocks, and calls its newest final', finalityDepth: 0, blocks: 20, durationMs: 12_000 },
      { what: 'for 20 min over 100 blocks, final after 64', finalityDepth: 64, blocks: 100, durationMs: 1_200_000 },
      {
        what: 'for 20 min over 100 blocks, without finality',
        finalityDepth: 'none',
        blocks: 100,
        durationMs: 1_200_000,
      },
    ] as const)('its events as well, $what', async ({ finalityDepth, blocks, durationMs }) => {
      await restage({ finalityDepth })
      const hash = await send(3)
      scene.node.mine()
      const remember = scene.node.forget(hash, { andEvents: true })
      for (let block = 0; block < blocks; block++) {
        await scene.publish()
        await scene.confirm()
        scene.node.mine()
        scene.pass(durationMs / blocks)
      }
      remember()
      await scene.finish({ complete: 3 })
      expect(scene.node.events()).toHaveLength(3)
    })

    test.each([0, 64, 'none'] as const)(
      'for a day, but knows the events of it, final after %s',
      async (finalityDepth) => {
        await restage({ finalityDepth })
        const hash = await send(3)
        scene.node.mine()
        const remember = scene.node.forget(hash)
        for (let block = 0; block < 96; block++) {
          await scene.publish()
          await scene.confirm()
          scene.node.mine()
          scene.pass(hour / 4)
        }
        expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 3 }])
        expect(scene.lines).toContainEqual({
          msg: 'Found events of a publication whose transaction is missing',
          hash,
          count: 3,
        })
        remember()
        await scene.finish({ complete: 3 })
        expect(scene.node.events()).toHaveLength(3)
      },
    )

    test('its events too, before and after an hour in which the worker slept', async () => {
      await restage({ finalityDepth: 0 })
      const hash = await send(1)
      scene.node.mine()
      const remember = scene.node.forget(hash, { andEvents: true })
      await scene.confirm()
      scene.node.mine(40)
      scene.pass(hour)
      await scene.confirm()
      expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 1 }])
      remember()
      await scene.finish({ complete: 1 })
    })

    test('and rejects event searches: no proof is released', async () => {
      const hash = await send(1)
      scene.node.mine()
      const remember = scene.node.forget(hash)
      for (let block = 0; block < 40; block++) {
        await scene.confirm()
        scene.node.mine()
      }
      scene.pass(hour / 2)
      scene.node.setFault('error', { methods: ['eth_getLogs'] })
      expect(await scene.confirm()).toEqual({ open: 1 })
      expect(scene.lines).toContainEqual({
        msg: 'Could not search for events',
        code: 'chain_unavailable',
        reason: 'eth_getLogs: status 500',
      })
      expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 1 }])
      scene.node.setFault()
      remember()
      await scene.finish({ complete: 1 })
    })
  })

  test('releases no proof if a receipt says reverted but the events are on the chain', async () => {
    const hash = await send(2)
    scene.node.mine()
    const { chain } = scene.deps
    const lying: Chain = {
      ...chain,
      getReceipt: async (asked) => {
        const receipt = await chain.getReceipt(asked)
        return receipt && { ...receipt, isSuccess: false, events: [] }
      },
    }
    for (let block = 0; block < 40; block++) {
      await scene.confirm({ chain: lying })
      scene.node.mine()
      scene.pass(12_000)
    }
    expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 2 }])
    expect(scene.lines).toContainEqual({
      msg: 'Found events of a publication whose transaction is missing',
      hash,
      count: 2,
    })
    await scene.finish({ complete: 2 })
    expect(scene.node.events()).toHaveLength(2)
  })

  test('fails a reverted publication with some events on the chain, without constant searches', async () => {
    const [first] = await scene.addProofs(3)
    await scene.publish()
    scene.node.setPublisher(stranger)
    scene.node.mine(20)
    scene.node.setPublisher(publisher)
    // Its event, published by another sender.
    if (first === undefined) throw new Error('no proof')
    const data = encodePublish([{ wallet: first.wallet, txHash: first.txHash, ipfsCid: first.cid }])
    await scene.node.sendFromElsewhere({ privateKey: publisherKey, to: scene.node.contract, data })
    for (let round = 0; round < 100; round++) {
      await scene.confirm()
      scene.pass(12_000)
    }
    expect(scene.node.requests.eth_getLogs).toBe(4)
    expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 3 }])
    scene.pass(DEADLINE_MS)
    await scene.confirm()
    scene.pass(MIN_OBSERVED_MS)
    await scene.confirm()
    expect(await scene.publications()).toMatchObject([{ status: 'reverted', proofs: 3 }])
    expect((await scene.proofs()).map(({ failure }) => failure)).toEqual(Array(3).fill('publish_unconfirmed'))
  })

  test('keeps a reverted publication waiting if events cannot be searched, and completes later ones', async () => {
    const { chain } = scene.deps
    const trusting: Chain = { ...chain, estimateGas: async () => 200_000n }
    scene.node.setPublisher(stranger)
    for (let count = 0; count < 4; count++) {
      await scene.addProofs(1)
      await scene.publish({ chain: { ...trusting, assertReady: async () => {} } })
    }
    scene.node.mine()
    scene.node.setPublisher(publisher)
    await send(2)
    scene.node.setFault('error', { methods: ['eth_getLogs'] })
    const before = scene.node.requests.eth_getLogs ?? 0
    await scene.live(1)
    scene.node.mine(30)
    await scene.confirm()
    expect((await scene.publications()).map(({ status }) => status)).toEqual([...Array(4).fill('pending'), 'confirmed'])
    expect(await scene.count()).toEqual({ pending_onchain: 4, complete: 2 })
    // Searches once per run.
    expect((scene.node.requests.eth_getLogs ?? 0) - before).toBe(1)
    // The next run starts with the others, so that one that always fails does not starve them.
    scene.node.setFault()
    await scene.confirm()
    expect((await scene.publications()).map(({ status }) => status)).toEqual([
      'pending',
      ...Array(3).fill('reverted'),
      'final',
    ])
    await scene.finish({ onchain_failed: 4, complete: 2 })
  })

  test('keeps a complete publication if the node has no receipts', async () => {
    await send(1)
    scene.node.mine(6)
    await scene.confirm()
    scene.node.setFault('no-receipts')
    await scene.live(40)
    expect(await scene.count()).toEqual({ complete: 1 })
    scene.node.setFault()
    await scene.finish({ complete: 1 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  test('fills a nonce gap after many blocks', async () => {
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    await send(1)
    // Removes the transaction that used nonce 0.
    scene.node.reorg(1, { keep: 'none' })
    await scene.live(17)
    expect(await scene.publications()).toMatchObject([{ nonce: 1 }])
    await scene.finish({ complete: 1 })
    expect((await scene.publications()).map(({ nonce, status, proofs }) => [nonce, status, proofs])).toEqual([
      [0, 'cancelled', 0],
      [1, 'final', 1],
    ])
  })

  test('splits a reverted publication, but not before it is final', async () => {
    const hash = await send(5)
    scene.node.setPublisher(stranger)
    scene.node.mine(8)
    expect(scene.node.transactions()).toMatchObject([{ hash, isSuccess: false }])
    await scene.confirm()
    expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 5 }])
    scene.node.mine()
    await scene.confirm()
    expect(await scene.publications()).toMatchObject([{ status: 'reverted', proofs: 0 }])
    expect((await scene.proofs()).map(({ publishLimit }) => publishLimit)).toEqual([3, 3, 3, 3, 3])
    expect(await codeOf(scene.publish())).toBe('publisher_not_allowed')
    scene.node.setPublisher(publisher)
    await scene.finish({ complete: 5 })
    expect((await scene.publications()).map(({ proofs }) => proofs)).toEqual([0, 3, 2])
  })

  test('completes a reverted publication if it succeeds after a reorganisation', async () => {
    await send(4)
    scene.node.setPublisher(stranger)
    scene.node.mine(7)
    await scene.confirm()
    scene.node.reorg(7)
    scene.node.setPublisher(publisher)
    await scene.finish({ complete: 4 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  test('fails a single proof that reverted', async () => {
    const [bad] = await scene.addProofs(1)
    await scene.publish()
    scene.node.revertFor(bad?.txHash ?? '0x')
    await scene.finish({ onchain_failed: 1 })
    expect(await scene.proofs()).toMatchObject([{ failure: 'publish_reverted' }])
  })

  test.each([
    ['still has the old key', false],
    ['has the new key', true],
  ])(
    'publishes a single proof again if it reverted because the publisher was rotated and the worker %s',
    async (_what, isRotated) => {
      await send(1)
      scene.node.setPublisher(stranger)
      scene.node.mine(9)
      const chain = scene.connect({ privateKey: strangerKey })
      if (isRotated) scene.deps.chain = chain
      await scene.confirm()
      expect(await scene.publications()).toMatchObject([{ status: 'reverted', proofs: 0 }])
      expect(await scene.count()).toEqual({ pending_onchain: 1 })
      scene.deps.chain = chain
      await scene.finish({ complete: 1 })
    },
  )

  test('halves a group until only the bad proof fails', async () => {
    const proofs = await scene.addProofs(10)
    const bad = proofs[3]?.txHash ?? '0x'
    const { chain } = scene.deps
    scene.node.revertFor(bad)
    const trusting: Chain = { ...chain, estimateGas: async () => 2_000_000n }
    for (let round = 0; round < 120; round++) {
      await scene.publish({ chain: trusting })
      await scene.confirm()
      scene.node.mine()
      scene.pass(12_000)
    }
    await scene.finish({ complete: 9, onchain_failed: 1 })
  })

  test('cancels a publication after its deadline, and its proofs fail', async () => {
    const hash = await send(2)
    scene.node.holdMempool(true)
    scene.pass(DEADLINE_MS - MIN_OBSERVED_MS)
    await scene.confirm()
    scene.pass(MIN_OBSERVED_MS - 1)
    await scene.confirm()
    expect(scene.node.mempool()).toMatchObject([{ to: scene.node.contract }])
    scene.pass(1)
    await scene.confirm()
    expect(scene.node.mempool()).toMatchObject([{ nonce: 0, from: publisher, to: publisher, value: 0n, data: '0x' }])
    expect((await scene.publications())[0]?.transactions.at(-1)).toMatchObject({ kind: 'cancel', isSent: true })
    scene.node.holdMempool(false)
    scene.node.mine(8)
    await scene.confirm()
    // Waits until the cancel is final.
    expect(await scene.count()).toEqual({ pending_onchain: 2 })
    await scene.finish({ onchain_failed: 2 })
    expect(await scene.publications()).toMatchObject([{ status: 'cancelled' }])
    expect((await scene.proofs()).map(({ failure }) => failure)).toEqual(['publish_cancelled', 'publish_cancelled'])
    expect(scene.node.events()).toEqual([])
    expect(scene.node.transactions().map((item) => item.hash)).not.toContain(hash)
  })

  test('raises a stuck cancel', async () => {
    await send(1)
    scene.node.setBaseFee(20n * gwei)
    await scene.passDeadline()
    await scene.confirm()
    scene.node.setBaseFee(200n * gwei)
    scene.pass(60_000)
    await scene.confirm()
    await scene.confirm()
    expect((await scene.publications())[0]?.transactions.map((item) => item.kind)).toEqual([
      'publish',
      'cancel',
      'cancel',
    ])
    await scene.finish({ onchain_failed: 1 })
  })

  test('completes if the original is mined before the cancel', async () => {
    const hash = await send(2)
    await scene.passDeadline()
    scene.node.setFault('down', SEND)
    await scene.confirm()
    scene.node.setFault()
    expect((await scene.publications())[0]?.transactions.at(-1)).toMatchObject({ kind: 'cancel', isSent: false })
    scene.node.mine()
    await scene.finish({ complete: 2 })
    expect((await scene.proofs())[0]?.onchainTxHash).toBe(hash)
  })

  test('decides between original and cancel only by the final transaction', async () => {
    await send(2)
    await scene.passDeadline()
    scene.node.setFault('down', SEND)
    await scene.confirm()
    scene.node.setFault()
    scene.node.mine(7)
    await scene.confirm()
    expect(await scene.count()).toEqual({ pending_onchain: 2 })
    scene.node.reorg(7, { keep: 'none' })
    await scene.finish({ onchain_failed: 2 })
    expect(scene.node.events()).toEqual([])
  })

  describe('after the deadline, but observed unmined for less than half an hour: sends instead of cancelling', () => {
    const kinds = async () => (await scene.publications())[0]?.transactions.map(({ kind }) => kind)

    test('if no worker ran before it, or one of two clocks is a day off', async () => {
      await claimOnly(2)
      scene.node.holdMempool(true)
      scene.pass(DEADLINE_MS)
      await scene.confirm()
      expect(scene.node.mempool()).toMatchObject([{ to: scene.node.contract }])
      scene.pass(MIN_OBSERVED_MS - 1)
      await scene.confirm()
      expect(await kinds()).not.toContain('cancel')
      scene.pass(1)
      await scene.confirm()
      expect((await kinds())?.at(-1)).toBe('cancel')
    })

    test('unless the deadline is shorter', async () => {
      const publishDeadlineMs = 60_000
      await send(2)
      scene.node.holdMempool(true)
      await scene.confirm({ publishDeadlineMs })
      scene.pass(publishDeadlineMs - 1)
      await scene.confirm({ publishDeadlineMs })
      expect(await kinds()).not.toContain('cancel')
      scene.pass(1)
      await scene.confirm({ publishDeadlineMs })
      expect((await kinds())?.at(-1)).toBe('cancel')
    })

    test('if the clock of the observing worker jumps a day ahead', async () => {
      await send(2)
      await scene.confirm()
      scene.pass(DEADLINE_MS)
      await scene.confirm()
      expect(await kinds()).not.toContain('cancel')
      await scene.finish({ complete: 2 })
    })

    test('if a reorganisation removes it after the deadline', async () => {
      await send(2)
      await scene.passDeadline()
      scene.node.mine(2)
      await scene.confirm()
      scene.node.reorg(2, { keep: 'none' })
      await scene.confirm()
      expect(await kinds()).not.toContain('cancel')
      await scene.finish({ complete: 2 })
    })
  })

  test('fails all proofs of many overdue publications', async () => {
    await claimOnly(1)
    for (let count = 0; count < 3; count++) await send(1)
    await scene.passDeadline()
    await scene.finish({ onchain_failed: 4 })
    expect(scene.node.transactions().map(({ nonce, to }) => [nonce, to])).toEqual(
      [0, 1, 2, 3].map((nonce) => [nonce, publisher]),
    )
  })

  test('survives a worker that freezes before it sends a cancel until the original is final', async () => {
    await send(2)
    await scene.passDeadline()
    const { chain, frozen, wake } = createFreeze(scene.deps.chain)
    const running = scene.confirm({ chain })
    await frozen
    scene.node.mine(20)
    await scene.confirm()
    expect(await scene.count()).toEqual({ complete: 2 })
    wake()
    await running
    await scene.finish({ complete: 2 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  describe('another contract in the configuration', () => {
    const other = `0x${'12'.repeat(20)}` as const

    async function claimElsewhere(count: number) {
      const { chain } = scene.deps
      scene.deps.chain = { ...chain, contract: other, estimateGas: async () => 100_000n }
      await claimOnly(count)
      scene.deps.chain = chain
    }

    test('skips a mined publication and logs it', async () => {
      await send(1)
      scene.node.mine(20)
      const { chain } = scene.deps
      await scene.confirm({ chain: { ...chain, contract: other } })
      expect(await scene.count()).toEqual({ pending_onchain: 1 })
      expect(scene.lines).toContainEqual(expect.objectContaining({ msg: 'Skipped a publication of another contract' }))
      await scene.finish({ complete: 1 })
    })

    test('resends and raises an unmined publication, so that later nonces are mined', async () => {
      await claimElsewhere(1)
      await send(1)
      expect(scene.node.mempool().map(({ nonce }) => nonce)).toEqual([0, 1])
      scene.node.setBaseFee(50n * gwei)
      scene.node.mine()
      scene.pass(60_000)
      await scene.confirm()
      scene.node.mine(20)
      await scene.confirm()
      await scene.confirm()
      // This worker cannot see its events.
      expect((await scene.publications()).map(({ status }) => status)).toEqual(['pending', 'final'])
      expect(scene.node.transactions()).toMatchObject([{ to: other }, { to: scene.node.contract }])
    })

    test('cancels after the deadline, which needs no events', async () => {
      await claimElsewhere(1)
      await scene.passDeadline()
      await scene.finish({ onchain_failed: 1 })
      expect(await scene.publications()).toMatchObject([{ status: 'cancelled' }])
    })

    test('does not abandon a nonce that another sender used, because its events may exist', async () => {
      await claimElsewhere(1)
      await scene.node.sendFromElsewhere({ privateKey: publisherKey })
      for (let round = 0; round < 40; round++) {
        await scene.confirm()
        scene.node.mine()
        scene.pass(60_000)
      }
      expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 1 }])
    })

    test('follows a complete publication until it is final', async () => {
      await send(1)
      scene.node.mine(6)
      await scene.confirm()
      expect(await scene.count()).toEqual({ complete: 1 })
      const chain: Chain = { ...scene.deps.chain, contract: other }
      scene.node.reorg(6, { keep: 'none' })
      scene.pass(15_000)
      await scene.confirm({ chain })
      scene.node.mine(20)
      await scene.confirm({ chain })
      expect(await scene.publications()).toMatchObject([{ status: 'final' }])
      await scene.assertEvents()
    })
  })

  test('resends and confirms the old account’s transactions after an account change', async () => {
    await claimOnly(2)
    scene.pass(60_000)
    const chain = scene.connect({ privateKey: strangerKey })
    await scene.confirm({ chain })
    expect(await scene.publications()).toMatchObject([{ transactions: [{ isSent: true }] }])
    scene.node.mine(10)
    await scene.confirm({ chain })
    expect(await scene.count()).toEqual({ complete: 2 })
    await scene.assertEvents()
  })

  test('publishes with the new account if a thief of the old key used its nonce', async () => {
    await claimOnly(2)
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    scene.node.setPublisher(stranger)
    scene.deps.chain = scene.connect({ privateKey: strangerKey })
    await scene.confirm()
    scene.pass(MIN_OBSERVED_MS - 1)
    scene.node.mine(40)
    await scene.confirm()
    expect(await scene.publications()).toMatchObject([{ status: 'pending', proofs: 2 }])
    scene.pass(1)
    await scene.confirm()
    expect(await scene.publications()).toMatchObject([{ status: 'lost', proofs: 0 }])
    await scene.finish({ complete: 2 })
    expect(scene.node.transactions().at(-1)).toMatchObject({ from: stranger, nonce: 0 })
  })

  describe('after a crash at any call, the next run ends correctly with at most one event', () => {
    const stories: Record<string, { prepare: () => Promise<void>; end: Record<string, number> }> = {
      'to be sent': { prepare: () => claimOnly(2), end: { complete: 2 } },
      'to be confirmed': {
        async prepare() {
          await send(2)
          scene.node.mine(6)
        },
        end: { complete: 2 },
      },
      'to be raised': {
        async prepare() {
          await send(2)
          scene.node.setBaseFee(50n * gwei)
          scene.node.mine()
          scene.pass(60_000)
        },
        end: { complete: 2 },
      },
      'to be cancelled': {
        async prepare() {
          await claimOnly(2)
          await scene.passDeadline()
        },
        end: { onchain_failed: 2 },
      },
      'to be split': {
        async prepare() {
          await send(3)
          scene.node.setPublisher(stranger)
          scene.node.mine(9)
          scene.node.setPublisher(publisher)
        },
        end: { complete: 3 },
      },
      'to be brought back': {
        async prepare() {
          await send(2)
          scene.node.mine(6)
          await scene.confirm()
          scene.node.reorg(6, { keep: 'none' })
          scene.pass(60_000)
        },
        end: { complete: 2 },
      },
      'to be followed and finished': {
        async prepare() {
          await send(2)
          scene.node.mine(6)
          await scene.confirm()
          scene.node.reorg(6)
          scene.node.mine(9)
        },
        end: { complete: 2 },
      },
      'to be lost': {
        async prepare() {
          await claimOnly(2)
          await scene.node.sendFromElsewhere({ privateKey: publisherKey })
          await scene.confirm()
          scene.node.mine(18)
          scene.pass(MIN_OBSERVED_MS)
        },
        end: { complete: 2 },
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
        await scene.finish(story.end, { blocks: 4 })
        if (died) continue
        expect(at).toBeGreaterThan(5)
        break
      }
    })
  })
})
