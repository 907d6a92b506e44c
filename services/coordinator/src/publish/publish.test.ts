import type { FakeChainFault } from '@countersign/testing'
import { sql } from 'kysely'
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
  type Scene,
  SEND,
  startTestPublishing,
  stranger,
  type TestPublishing,
} from '../../test/publish/publishing.ts'
import { holdTimeLimits } from '../../test/timeLimits.ts'
import { CoordinatorError } from '../errors.ts'
import { CONFIRM_QUEUE, openJobs } from '../store/jobs.ts'
import { openDatabase } from '../store/openDatabase.ts'
import { createPublicationStore } from '../store/publications.ts'
import { ChainError } from './chain/chainError.ts'
import { encodePublish } from './chain/contract.ts'
import type { Chain } from './chain/viemChain.ts'
import { selectGroup } from './publish.ts'
import { withMargin } from './send.ts'

test.each([
  [[], []],
  [
    [200, 200, 200],
    [200, 200, 200],
  ],
  [[1, 200, 200], [1]],
  [
    [200, 200, 1, 200],
    [200, 200],
  ],
  [
    [3, 2, 200, 200],
    [3, 2],
  ],
  [
    [200, 3, 200, 200],
    [200, 3, 200],
  ],
])('limits %o give the first group %o', (limits, expected) => {
  const group = selectGroup(limits.map((publishLimit) => ({ publishLimit })))
  expect(group.map(({ publishLimit }) => publishLimit)).toEqual(expected)
})

test('the gas margin is a fifth, rounded up', () => {
  expect([1n, 5n, 28_700n, 100_001n].map(withMargin)).toEqual([2n, 6n, 34_440n, 120_002n])
})

describe('publishing', () => {
  let publishing: TestPublishing
  let scene: Scene
  beforeAll(async () => {
    publishing = await startTestPublishing()
  })
  afterAll(() => publishing.stop())
  beforeEach(async () => {
    scene = await createScene(publishing)
  })

  test('does not call the chain if nothing is due', async () => {
    await scene.publish()
    expect(await scene.confirm()).toEqual({ open: 0 })
    expect(scene.node.requests).toEqual({})
  })

  test('claims, sends, completes and finishes one proof', async () => {
    const [proof] = await scene.addProofs(1)
    await scene.publish()
    expect(await scene.countJobs(CONFIRM_QUEUE)).toBe(1)
    const [sent] = scene.node.mempool()
    expect(sent).toMatchObject({
      nonce: 0,
      data: encodePublish([
        { wallet: proof?.wallet ?? '0x', txHash: proof?.txHash ?? '0x', ipfsCid: proof?.cid ?? '' },
      ]),
    })
    expect(await scene.publications()).toMatchObject([
      { nonce: 0, status: 'pending', proofs: 1, transactions: [{ hash: sent?.hash, kind: 'publish', isSent: true }] },
    ])
    await scene.finish({ complete: 1 })
    expect(await scene.publications()).toMatchObject([{ status: 'final' }])
  })

  test('puts 200 proofs in one transaction and the 201st in the next', async () => {
    await scene.addProofs(201)
    await scene.publish()
    expect((await scene.publications()).map(({ proofs }) => proofs)).toEqual([200, 1])
    await scene.finish({ complete: 201 })
    expect(scene.node.transactions().map(({ nonce }) => nonce)).toEqual([0, 1])
  })

  test('fails only the bad proof among ten', async () => {
    const proofs = await scene.addProofs(10)
    const bad = proofs[6]
    if (!bad) throw new Error('no proof')
    scene.node.revertFor(bad.txHash)
    await scene.publish()
    await scene.finish({ complete: 9, onchain_failed: 1 })
    expect((await scene.proofs()).find(({ slug }) => slug === bad.slug)).toMatchObject({
      status: 'onchain_failed',
      failure: 'publish_reverted',
      publicationId: null,
    })
  })

  test('uses no nonce if all proofs are bad', async () => {
    await scene.addProofs(5)
    scene.node.revertFor(() => true)
    await scene.publish()
    expect([await scene.count(), await scene.publications()]).toEqual([{ onchain_failed: 5 }, []])
  })

  test('claims and fails nothing if the account is not the publisher, and continues when that is fixed', async () => {
    await scene.addProofs(4)
    scene.node.setPublisher(stranger)
    expect(await codeOf(scene.publish())).toBe('publisher_not_allowed')
    expect([await scene.count(), await scene.publications()]).toEqual([{ pending_onchain: 4 }, []])
    scene.node.setPublisher(publisher)
    await scene.finish({ complete: 4 })
  })

  test.each(['NotPublisher', 'no reason'])(
    'the right is lost between the first check and the estimate, which says "%s": the proofs wait',
    async (details) => {
      const [proof] = await scene.addProofs(1)
      const { chain } = scene.deps
      const refusing: Chain = {
        ...chain,
        async estimateGas() {
          scene.node.setPublisher(stranger)
          throw new ChainError('call_reverted', { details })
        },
      }
      expect(await codeOf(scene.publish({ chain: refusing }))).toBe('publisher_not_allowed')
      expect(await scene.proofs()).toEqual([proof])
    },
  )

  test('stores a transaction that the account cannot pay, and sends it with funds', async () => {
    await scene.addProofs(2)
    scene.node.setBalance(publisher, 1n)
    expect(await codeOf(scene.publish())).toBe('insufficient_funds')
    expect(await scene.publications()).toMatchObject([{ proofs: 2, transactions: [{ isSent: false }] }])
    expect(scene.node.mempool()).toEqual([])
    scene.node.setBalance(publisher, 10n ** 18n)
    await scene.finish({ complete: 2 })
  })

  const total: FakeChainFault[] = ['down', 'slow', 'error', 'garbage', 'truncated', 'oversized']
  test.each(total)('claims nothing and retries the job if the node is %s', async (fault) => {
    await scene.addProofs(3)
    scene.node.setFault(fault, { delayMs: 5_000 })
    expect(await codeOf(scene.publish({ chain: scene.connect({ timeoutMs: 500 }) }))).toBe('chain_unavailable')
    expect([await scene.count(), await scene.publications()]).toEqual([{ pending_onchain: 3 }, []])
    scene.node.setFault()
    await scene.finish({ complete: 3 })
  })

  const reads = ['eth_estimateGas', 'eth_getTransactionCount', 'eth_maxPriorityFeePerGas']
  test.each(reads)('claims nothing if %s fails', async (method) => {
    await scene.addProofs(3)
    scene.node.setFault('down', { methods: [method] })
    expect(await codeOf(scene.publish())).toBe('chain_unavailable')
    expect(await scene.publications()).toEqual([])
    scene.node.setFault()
    await scene.finish({ complete: 3 })
  })

  const halfway: FakeChainFault[] = [...total, 'wrong-hash', 'reset-after-accept']
  test.each(halfway)('publishes one event if the node is %s while it gets the transaction', async (fault) => {
    await scene.addProofs(3)
    const isTaken = ['slow', 'truncated', 'wrong-hash', 'reset-after-accept'].includes(fault)
    scene.node.setFault(fault, { ...SEND, delayMs: 3_600_000 })
    const limits = holdTimeLimits()
    const run = scene.publish()
    if (fault === 'slow') {
      await expect.poll(() => scene.node.mempool()).toHaveLength(1)
      limits.end()
    }
    await run
    expect(scene.node.mempool()).toHaveLength(isTaken ? 1 : 0)
    expect(await scene.publications()).toMatchObject([{ status: 'pending', transactions: [{ isSent: false }] }])
    scene.node.setFault()
    await scene.finish({ complete: 3 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  test('ignores a node of another chain', async () => {
    await scene.addProofs(1)
    expect(await codeOf(scene.publish({ chain: scene.connect({ chainId: 1 }) }))).toBe('chain_mismatch')
    expect(await scene.publications()).toEqual([])
  })

  test('leaves proofs over the daily gas limit unclaimed until older publications are a day old', async () => {
    await scene.addProofs(2)
    await scene.publish()
    const [first] = scene.node.mempool()
    // Room for two but not three. Gas varies, because zero bytes of calldata cost less.
    const gasPerDay = ((first?.gas ?? 0n) * 5n) / 2n
    await scene.addProofs(2)
    await scene.publish({ gasPerDay })
    expect(await scene.publications()).toHaveLength(2)
    const [late] = await scene.addProofs(1)
    expect(await codeOf(scene.publish({ gasPerDay }))).toBe('gas_budget_spent')
    expect((await scene.proofs()).find(({ slug }) => slug === late?.slug)).toMatchObject({
      status: 'pending_onchain',
      publicationId: null,
    })
    // A replacement reuses the nonce, so it counts once.
    scene.node.setBaseFee(50n * gwei)
    scene.node.mine()
    scene.pass(60_000)
    await scene.confirm({ gasPerDay })
    expect((await scene.publications()).map(({ transactions }) => transactions.length)).toEqual([2, 2])
    scene.pass(DEADLINE_MS - 60_000 - 1)
    expect(await codeOf(scene.publish({ gasPerDay }))).toBe('gas_budget_spent')
    scene.pass(1)
    await scene.publish({ gasPerDay })
    expect(await scene.publications()).toHaveLength(3)
  })

  test('concurrent workers stay within the daily gas limit', async () => {
    await scene.addProofs(8)
    await sql`update proofs set publish_limit = 1`.execute(publishing.subject.database.db)
    // Makes all estimates equal.
    const chain: Chain = { ...scene.deps.chain, estimateGas: async () => 100_000n }
    const gasPerDay = 3n * withMargin(100_000n)
    const runs = Array.from({ length: 4 }, () => codeOf(scene.publish({ chain, gasPerDay })))
    expect(await Promise.all(runs)).toEqual(Array(4).fill('gas_budget_spent'))
    expect((await scene.publications()).map(({ proofs }) => proofs)).toEqual([1, 1, 1])
  })

  test('never uses a nonce below the chain’s', async () => {
    const { sendFromElsewhere } = scene.node
    const privateKey = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80'
    await sendFromElsewhere({ privateKey })
    await sendFromElsewhere({ privateKey })
    await scene.addProofs(1)
    await scene.publish()
    expect(await scene.publications()).toMatchObject([{ nonce: 2 }])
    await scene.finish({ complete: 1 })
  })

  test('claims nothing at a nonce ahead of ours that the node reports only once', async () => {
    await scene.addProofs(1)
    const answers = [2 ** 40]
    const { chain } = scene.deps
    const lying: Chain = { ...chain, getNonce: async (block) => answers.pop() ?? (await chain.getNonce(block)) }
    expect(await codeOf(scene.publish({ chain: lying }))).toBe('chain_unavailable')
    expect(await scene.publications()).toEqual([])
    await scene.publish({ chain: lying })
    expect(await scene.publications()).toMatchObject([{ nonce: 0 }])
  })

  test('fails proofs with the reason if the chain is down until the deadline', async () => {
    await scene.addProofs(2)
    scene.node.setFault('down')
    scene.pass(DEADLINE_MS)
    expect(await codeOf(scene.publish())).toBe('chain_unavailable')
    const [young] = await scene.addProofs(1)
    scene.pass(29 * 60_000)
    expect(await codeOf(scene.publish())).toBe('chain_unavailable')
    // A chain that has just recovered or is busy is not down.
    expect(await scene.count()).toEqual({ pending_onchain: 3 })
    scene.pass(60_000)
    expect(await codeOf(scene.publish())).toBe('chain_unavailable')
    expect(await scene.count()).toEqual({ onchain_failed: 2, pending_onchain: 1 })
    expect((await scene.proofs()).map(({ failure }) => failure)).toEqual(['publish_deadline', 'publish_deadline', null])
    scene.node.setFault()
    await scene.finish({ onchain_failed: 2, complete: 1 })
    expect(scene.node.events().map(({ txHash }) => txHash)).toEqual([young?.txHash])
  })

  test('publishes after the deadline if no worker ran before', async () => {
    await scene.addProofs(2)
    scene.pass(DEADLINE_MS + 1)
    await scene.publish()
    await scene.finish({ complete: 2 })
  })

  test('fails no proof for a database failure after the deadline', async () => {
    await scene.addProofs(2)
    scene.pass(DEADLINE_MS + 1)
    const { store } = scene.deps
    const failing = { ...store, claim: () => Promise.reject(new CoordinatorError('database_unavailable', 'gone')) }
    await expect(scene.publish({ store: failing })).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(await scene.count()).toEqual({ pending_onchain: 2 })
  })

  test.each(['before', 'after'] as const)('publishes one event each after a crash %s any call', async (when) => {
    scene = await createScene(publishing, { confirmations: 1, finalityDepth: 1 })
    let total = 0
    for (let at = 1; ; at++) {
      const [bad] = await scene.addProofs(5)
      const undo = scene.node.revertFor(bad?.txHash ?? '0x')
      total += 5
      const crash = createCrash(at, when)
      const { store, chain } = scene.deps
      const died = await scene.publish({ store: crash.wrap(store), chain: crash.wrap(chain) }).then(
        () => false,
        (error: unknown) => error instanceof Crash,
      )
      expect(died).toBe(!crash.isOver)
      await scene.finish({ complete: (total / 5) * 4, onchain_failed: total / 5 })
      undo()
      if (!died) break
    }
    expect(total).toBeGreaterThan(100)
  })

  test('a worker that freezes between claim and send can only send stored bytes', async () => {
    await scene.addProofs(2)
    const { chain, frozen, wake } = createFreeze(scene.deps.chain)
    const running = scene.publish({ chain })
    await frozen
    await scene.finish({ complete: 2 })
    wake()
    await running
    await scene.addProofs(1)
    await scene.finish({ complete: 3 })
    expect(scene.node.transactions()).toHaveLength(2)
  })

  test('a worker that freezes past the cancel publishes no event, and the proofs stay failed', async () => {
    await scene.addProofs(2)
    const { chain, frozen, wake } = createFreeze(scene.deps.chain)
    const running = scene.publish({ chain })
    await frozen
    await scene.passDeadline()
    await scene.finish({ onchain_failed: 2 })
    wake()
    await running
    await scene.live(20)
    expect(scene.node.events()).toEqual([])
    expect(scene.lines).toContainEqual(expect.objectContaining({ code: 'nonce_too_low' }))
  })

  test('two concurrent publishers share one nonce sequence and publish every proof once', async () => {
    const other = await openDatabase(publishing.subject.options)
    const jobs = await openJobs(other, { pipelineDelayMs: 1000 })
    try {
      await scene.addProofs(60)

      await sql`update proofs set publish_limit = 5`.execute(other.db)
      const store = createPublicationStore({ db: other.db, jobs })
      await Promise.all([
        scene.publish(),
        scene.publish({ store, chain: scene.connect() }),
        scene.publish({ store, chain: scene.connect() }),
      ])
      expect((await scene.publications()).map(({ nonce, proofs }) => [nonce, proofs])).toEqual(
        Array.from({ length: 12 }, (_, nonce) => [nonce, 5]),
      )
      await scene.finish({ complete: 60 })
    } finally {
      await jobs.stop()
      await other.close()
    }
  })
})
