import { fromHex, fromPrefixedHex, toLogId } from '@countersign/protocol'
import { fromCidHash, parseAnchorBlock, toCid } from '@countersign/receipt'
import type { FakeChainFault } from '@countersign/testing'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createTestApp } from '../../test/http/testApp.ts'
import { type AnchorScene, createAnchorScene, toIdOf } from '../../test/publish/anchoring.ts'
import {
  Crash,
  codeOf,
  createCrash,
  createFreeze,
  DEADLINE_MS,
  publisher,
  SEND,
  startTestPublishing,
  stranger,
  type TestPublishing,
} from '../../test/publish/publishing.ts'
import { type AnchorSource, type AnchorStore, createAnchorStore } from '../store/anchors.ts'
import { openJobs } from '../store/jobs.ts'
import { openDatabase } from '../store/openDatabase.ts'
import { createPinningStore } from '../store/pinning.ts'
import { createPublicationStore } from '../store/publications.ts'
import { createRebuildReceipt } from './assembleReceipt.ts'
import type { Chain } from './chain/viemChain.ts'
import { PinError } from './ipfs/pinError.ts'
import type { Pinner } from './ipfs/pinner.ts'

describe('publishing checkpoints', () => {
  let publishing: TestPublishing
  let scene: AnchorScene
  beforeAll(async () => {
    publishing = await startTestPublishing()
  })
  afterAll(() => publishing.stop())
  beforeEach(async () => {
    scene = await createAnchorScene(publishing)
  })

  async function restage(options: Parameters<typeof createAnchorScene>[1]) {
    scene = await createAnchorScene(publishing, options)
  }
  const setLimit = (maxAnchored: number) => {
    scene.anchoring.anchors = createAnchorStore({ db: publishing.subject.database.db }, { maxAnchored })
  }
  const sizes = async () => (await scene.anchors()).map(({ size }) => size)
  const failing = (changes: Partial<Pinner>) => ({ ...scene.anchoring, pinner: { ...scene.pinner, ...changes } })
  const events = { anchoring: undefined }

  test('publishes a proof with a checkpoint, and completes it when the block is final', async () => {
    const observed: unknown[] = []
    scene.anchoring.observeAnchor = (...observation) => observed.push(observation)
    const log = scene.createLog()
    const [slug = ''] = await scene.sign(log)
    await scene.publish()
    expect(await scene.anchors()).toEqual([{ nonce: 0, size: 3, status: 'pending', proofs: 1 }])
    expect(observed).toEqual([[log.origin, 3]])
    scene.node.mine(8)
    expect(await scene.confirm()).toEqual({ open: 1 })
    expect(await scene.count()).toEqual({ pending_onchain: 1 })
    expect((await publishing.subject.store.findProof(slug))?.anchor).toBeUndefined()
    scene.node.mine()
    expect(await scene.confirm()).toEqual({ open: 0 })
    expect(await scene.count()).toEqual({ complete: 1 })
    expect(await publishing.subject.store.findProof(slug)).toMatchObject({
      isFinal: true,
      anchor: { index: 1, size: 3 },
    })
    await scene.finish({ complete: 1 })
  })

  test('GET /proof/:slug has the checkpoint, but none for an event', async () => {
    const { store, database, jobs } = publishing.subject
    const log = scene.createLog()
    const [published = ''] = await scene.sign(log)
    await scene.publish(events)
    const [anchored = ''] = await scene.sign(log)
    await scene.finish({ complete: 2 })
    // The scene's receipts are no real ones, so the service rebuilds them.
    await sql`delete from receipts`.execute(database.db)
    const rebuild = createRebuildReceipt(createPinningStore({ db: database.db, jobs }))
    const rebuildReceipt = async (slug: string) => {
      const block = await rebuild(slug)
      return block && { ...block, cid: toCid(Buffer.from(slug)) }
    }
    // Checks answers against the OpenAPI document.
    const app = createTestApp({ deps: { store, rebuildReceipt } })
    const get = async (slug: string) => (await app.request(`/proof/${slug}`)).json()
    const [event] = scene.node.checkpoints()
    const place = { txHash: event?.transactionHash, blockNumber: event?.blockNumber }
    expect(await get(anchored)).toMatchObject({
      status: 'complete',
      onchainTxHash: place.txHash,
      onchainBlockNumber: place.blockNumber,
      anchor: {
        ...place,
        chainId: scene.node.chainId,
        contract: scene.node.logWitness,
        id: event?.id,
        size: 5,
        index: 3,
        path: Array(3).fill(expect.stringMatching(/^[0-9a-f]{64}$/)),
      },
    })
    expect(await get(published)).not.toHaveProperty('anchor')
  })

  test('publishes many proofs of many calls with one checkpoint', async () => {
    const log = scene.createLog()
    for (let call = 0; call < 5; call++) await scene.sign(log, 60, { others: 3 })
    await scene.publish()
    await scene.finish({ complete: 300 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  test('covers no entries after those of the due proofs', async () => {
    const log = scene.createLog()
    await scene.sign(log)
    await scene.sign(log, 1, { isPinned: false })
    await scene.publish()
    expect(await sizes()).toEqual([3])
  })

  test('starts the first checkpoint of a log at the oldest due proof', async () => {
    const log = scene.createLog()
    await scene.sign(log, 5)
    await scene.publish(events)
    await scene.sign(log, 2)
    await scene.publish()
    await scene.finish({ complete: 7 })
    const block = scene.node.checkpoints()[0]?.block ?? '0x'
    const bytes = scene.pinner.blocks.get(fromCidHash(fromPrefixedHex(block)))
    expect(parseAnchorBlock(bytes ?? new Uint8Array())).toMatchObject({ from: 11 })
  })

  describe('waits for more proofs', () => {
    beforeEach(() => restage({ delayMs: 12_000 }))

    test('until the oldest has waited long enough, and does not call the chain before', async () => {
      const log = scene.createLog()
      await scene.sign(log)
      expect(await scene.publish()).toEqual({ waitMs: 1_000 })
      scene.pass(11_999)
      await scene.sign(log)
      expect(await scene.publish()).toEqual({ waitMs: 1 })
      expect(scene.node.requests).toEqual({})
      scene.pass(1)
      await scene.publish()
      expect(await scene.anchors()).toMatchObject([{ size: 5, proofs: 2 }])
    })

    test('until there are as many as fit, and publishes the others next', async () => {
      setLimit(3)
      const log = scene.createLog()
      await scene.sign(log, 2)
      expect(await scene.publish()).toEqual({ waitMs: 1_000 })
      await scene.sign(log, 3)
      expect(await scene.publish()).toEqual({ waitMs: 2_000 })
      // The checkpoint after the third proof would also cover the others, which this one doesn't list.
      expect(await scene.anchors()).toMatchObject([{ proofs: 2 }])
      await scene.finish({ complete: 5 })
      expect((await scene.anchors()).map(({ proofs }) => proofs)).toEqual([2, 3])
    })

    test('and starts with the oldest signatures in any order of pins', async () => {
      setLimit(3)
      const log = scene.createLog()
      const slugs: string[][] = []
      for (let call = 0; call < 7; call++) slugs.push(await scene.sign(log, 1, { isPinned: false }))
      for (const pinned of slugs.toReversed()) {
        await scene.pin(pinned)
        scene.pass(1)
      }
      await scene.finish({ complete: 7 })
      expect(scene.node.events()).toEqual([])
    })

    test.each([-1, 1])('publishes at once after the clock was set %d years on', async (years) => {
      await scene.sign(scene.createLog())
      scene.pass(years * 365 * 86_400_000)
      await scene.publish()
      expect(await sizes()).toEqual([3])
    })

    test('publishes proofs without a log entry as events at once', async () => {
      await scene.sign(scene.createLog())
      await scene.addProofs(2)
      expect(await scene.publish()).toEqual({ waitMs: 1_000 })
      expect(await scene.anchors()).toEqual([])
      await scene.finish({ complete: 3 })
    })

    test('also if older proofs of another log cannot be published', async () => {
      await scene.sign(scene.createLog({ isRegistered: false }))
      scene.pass(60_000)
      await scene.sign(scene.createLog())
      expect(await codeOf(scene.publish())).toBe('log_not_registered')
      expect(await scene.anchors()).toEqual([])
      scene.pass(12_000)
      expect(await codeOf(scene.publish())).toBe('log_not_registered')
      expect(await scene.anchors()).toHaveLength(1)
    })
  })

  describe('a proof that is pinned after a checkpoint has covered its entry', () => {
    test('is listed with its path in the next one', async () => {
      const log = scene.createLog()
      const late = await scene.sign(log, 300, { isPinned: false, others: 0 })
      await scene.send(log)
      scene.node.mine()
      await scene.pin(late)
      await scene.sign(log, 3)
      await scene.publish()
      expect((await scene.anchors()).map(({ proofs }) => proofs)).toEqual([1, 303])
      await scene.finish({ complete: 304 })
      expect(scene.node.events()).toEqual([])
    })

    test('is published as an event if the log has not grown', async () => {
      const log = scene.createLog()
      const late = await scene.sign(log, 2, { isPinned: false })
      await scene.send(log)
      await scene.pin(late)
      // Its checkpoint may not get on the chain, so that this one has to.
      expect(await scene.publish()).toEqual({ waitMs: 2_000 })
      scene.node.mine()
      await scene.publish()
      await scene.finish({ complete: 3 })
      expect([scene.node.events().length, scene.node.checkpoints().length]).toEqual([2, 1])
    })
  })

  test('sends the next checkpoint when the previous one is in a block, before it is final', async () => {
    const log = scene.createLog()
    await scene.send(log)
    await scene.sign(log)
    expect(await scene.publish()).toEqual({ waitMs: 2_000 })
    expect(await sizes()).toEqual([3])
    scene.node.mine()
    await scene.publish()
    expect(await scene.anchors()).toMatchObject([
      { size: 3, status: 'pending' },
      { size: 5, status: 'pending' },
    ])
    await scene.finish({ complete: 2 })
  })

  describe('several logs', () => {
    test('each gets a checkpoint', async () => {
      for (let count = 1; count <= 3; count++) await scene.sign(scene.createLog(), count)
      await scene.publish()
      expect(await sizes()).toEqual([3, 5, 7])
      await scene.finish({ complete: 6 })
    })

    test('one that is not registered stops neither the others nor events, and continues when it is', async () => {
      const log = scene.createLog({ isRegistered: false })
      await scene.sign(log)
      await scene.sign(scene.createLog())
      await scene.addProofs(1)
      expect(await codeOf(scene.publish())).toBe('log_not_registered')
      expect(await scene.count()).toEqual({ pending_onchain: 3 })
      expect(await scene.publications()).toHaveLength(2)
      scene.node.registerLog(toIdOf(log))
      await scene.finish({ complete: 3 })
    })

    test('one whose proofs alone reach the limit does not stop the others', async () => {
      setLimit(3)
      await scene.sign(scene.createLog({ isRegistered: false }), 5)
      await scene.sign(scene.createLog({ isRegistered: false }), 5)
      await scene.sign(scene.createLog(), 2)
      expect(await codeOf(scene.publish())).toBe('log_not_registered')
      expect(await scene.anchors()).toMatchObject([{ proofs: 2 }])
    })

    test.each<[string, (source: AnchorSource) => AnchorSource]>([
      ['is missing', () => Promise.reject(new Error('a part of the log is not all there')) as never],
      ['is changed', (source) => ({ ...source, entries: source.entries.map((byte) => byte ^ 1) })],
    ])('one of which a part %s in the database stops neither the others nor events', async (_, damage) => {
      const log = scene.createLog()
      await scene.sign(log)
      await scene.sign(scene.createLog())
      await scene.addProofs(1)
      const { anchors } = scene.anchoring
      const damaged: AnchorStore = {
        ...anchors,
        async findAnchorSource(parameters) {
          const source = await anchors.findAnchorSource(parameters)
          return source && parameters.log.origin === log.origin ? damage(source) : source
        },
      }
      await expect(scene.publish({ anchoring: { ...scene.anchoring, anchors: damaged } })).rejects.toThrow()
      expect(await scene.publications()).toHaveLength(2)
      expect(scene.lines).toContainEqual(
        expect.objectContaining({ msg: 'Could not publish a checkpoint', origin: log.origin }),
      )
      await scene.finish({ complete: 3 })
    })

    test('one with another publisher waits', async () => {
      const log = scene.createLog()
      scene.node.registerLog(toIdOf(log), stranger)
      await scene.sign(log)
      expect(await codeOf(scene.publish())).toBe('log_not_registered')
      expect(scene.pinner.blocks.size).toBe(0)
      scene.node.registerLog(toIdOf(log), publisher)
      await scene.finish({ complete: 1 })
    })
  })

  describe('a wrong contract', () => {
    test.each(['an account without code', 'ServiceAttestations'])('%s: publishes only events', async (what) => {
      const contract = what === 'ServiceAttestations' ? scene.node.contract : stranger
      await scene.sign(scene.createLog())
      await scene.addProofs(1)
      const anchoring = { ...scene.anchoring, target: { ...scene.anchoring.target, contract } }
      expect(await codeOf(scene.publish({ anchoring }))).toBe('contract_missing')
      expect([await scene.anchors(), (await scene.publications()).length]).toEqual([[], 1])
      await scene.finish({ complete: 2 })
    })
  })

  test('starts again in a log that another owner registered', async () => {
    const log = scene.createLog()
    await scene.send(log, 2)
    scene.node.mine()
    const { target } = scene.anchoring
    scene.anchoring.target = { ...target, owner: stranger }
    const id = toLogId(stranger, fromHex(log.hash))
    scene.node.registerLog(id)
    await scene.sign(log)
    await scene.publish()
    await scene.finish({ complete: 3 })
    expect(scene.node.checkpoints().map((event) => [event.id, event.size])).toEqual([
      [toIdOf(log), 5],
      [id, 7],
    ])
  })

  describe('a failed pin: nothing is sent, and events go on', () => {
    const isBlock = (bytes: Uint8Array) => Buffer.from(bytes).includes('"checkpoint"')
    const refuse = () => Promise.reject(new PinError('pin_unavailable'))
    test.each<[string, (pinner: AnchorScene['pinner']) => Partial<Pinner>, string]>([
      ['of a part', ({ pin }) => ({ pin: (one, of) => (isBlock(one.bytes) ? pin(one, of) : refuse()) }), 'unavailable'],
      [
        'of the block',
        ({ pin }) => ({ pin: (one, of) => (isBlock(one.bytes) ? refuse() : pin(one, of)) }),
        'unavailable',
      ],
      ['that is not readable', () => ({ read: () => Promise.reject(new PinError('pin_not_found')) }), 'not_found'],
      ['with other bytes', () => ({ read: async () => new Uint8Array(3) }), 'mismatch'],
    ])('%s', async (_, change, code) => {
      await scene.sign(scene.createLog(), 2)
      await scene.sign(scene.createLog(), 2)
      await scene.addProofs(1)
      await expect(scene.publish({ anchoring: failing(change(scene.pinner)) })).rejects.toMatchObject({
        code: `pin_${code}`,
      })
      expect([await scene.anchors(), (await scene.publications()).length]).toEqual([[], 1])
      await scene.finish({ complete: 5 })
    })
  })

  test('pins a few parts at once, then the block', async () => {
    await scene.sign(scene.createLog(), 1, { others: 12_000 })
    let [pinning, most] = [0, 0]
    const pinned: number[] = []
    const anchoring = failing({
      async pin(block, options) {
        pinning += 1
        most = Math.max(most, pinning)
        await new Promise((resolve) => setTimeout(resolve, 1))
        await scene.pinner.pin(block, options)
        pinned.push(pinning)
        pinning -= 1
      },
    })
    await scene.publish({ anchoring })
    expect([most, pinned.length, pinned.at(-1)]).toEqual([8, 20, 1])
    await scene.finish({ complete: 1 })
  })

  describe('an account that cannot pay', () => {
    test('uses one nonce, and continues with funds', async () => {
      for (let log = 0; log < 3; log++) await scene.sign(scene.createLog())
      await scene.addProofs(1)
      scene.node.setBalance(publisher, 1n)
      for (let run = 0; run < 3; run++) expect(await codeOf(scene.publish())).toBe('insufficient_funds')
      expect(await scene.publications()).toMatchObject([{ transactions: [{ isSent: false }] }])
      scene.node.setBalance(publisher, 10n ** 18n)
      await scene.finish({ complete: 4 })
    })

    test('pins nothing while the daily gas limit is reached, and fails no proof', async () => {
      const log = scene.createLog()
      await scene.send(log)
      scene.node.mine()
      const blocks = scene.pinner.blocks.size
      await scene.sign(log, 2)
      const gasPerDay = ((scene.node.transactions()[0]?.gas ?? 0n) * 3n) / 2n
      for (let hour = 0; hour < 23; hour++) {
        expect(await codeOf(scene.publish({ gasPerDay }))).toBe('gas_budget_spent')
        scene.pass(3_600_000)
      }
      expect(scene.pinner.blocks.size).toBe(blocks)
      scene.pass(3_600_000)
      await scene.publish({ gasPerDay })
      await scene.finish({ complete: 3 })
    })
  })

  describe('the node', () => {
    const faults: FakeChainFault[] = ['down', 'error', 'garbage', 'truncated', 'oversized']
    test.each(faults)('claims and pins nothing if it is %s', async (fault) => {
      await scene.sign(scene.createLog(), 2)
      scene.node.setFault(fault)
      expect(await codeOf(scene.publish())).toBe('chain_unavailable')
      expect([await scene.publications(), scene.pinner.blocks.size]).toEqual([[], 0])
      scene.node.setFault()
      await scene.finish({ complete: 2 })
    })

    const halfway: FakeChainFault[] = ['down', 'truncated', 'wrong-hash', 'reset-after-accept']
    test.each(halfway)('publishes once if it is %s while it gets the transaction', async (fault) => {
      await scene.sign(scene.createLog(), 2)
      scene.node.setFault(fault, SEND)
      await scene.publish()
      scene.node.setFault()
      await scene.finish({ complete: 2 })
      expect(scene.node.transactions()).toHaveLength(1)
    })

    test('sends nothing while it lags behind the newest checkpoint', async () => {
      const log = scene.createLog()
      const behind = await scene.deps.chain.readLog({ contract: scene.node.logWitness, id: toIdOf(log) })
      await scene.send(log)
      scene.node.mine(20)
      await scene.confirm()
      await scene.sign(log)
      const lagging: Chain = { ...scene.deps.chain, readLog: async () => behind }
      expect(await scene.publish({ chain: lagging })).toEqual({ waitMs: 2_000 })
      expect(await sizes()).toEqual([3])
      await scene.finish({ complete: 2 })
    })

    test('publishes no events if it claims a head beyond the log', async () => {
      const log = scene.createLog()
      await scene.sign(log, 2)
      const { chain } = scene.deps
      const lying: Chain = {
        ...chain,
        readLog: async (asked) => ({ ...(await chain.readLog(asked)), size: 2 ** 40, root: 'ab'.repeat(32) }),
      }
      expect(await codeOf(scene.publish({ chain: lying }))).toBe('anchor_conflict')
      expect(await scene.publications()).toEqual([])
      await scene.finish({ complete: 2 })
    })

    test('fails proofs after the deadline if it rejects every checkpoint', async () => {
      await scene.sign(scene.createLog())
      const { chain } = scene.deps
      const refusing: Chain = { ...chain, estimateGas: (call) => chain.estimateGas({ ...call, data: '0x12345678' }) }
      scene.pass(DEADLINE_MS)
      expect(await codeOf(scene.publish({ chain: refusing }))).toBe('chain_unavailable')
      scene.pass(1_800_000)
      expect(await codeOf(scene.publish({ chain: refusing }))).toBe('chain_unavailable')
      expect(await scene.proofs()).toMatchObject([{ status: 'onchain_failed', failure: 'publish_deadline' }])
    })
  })

  describe('a head that another sender moved', () => {
    test('within our log: continues from there', async () => {
      const log = scene.createLog()
      await scene.sign(log, 2)
      await scene.advanceElsewhere(log, 3)
      await scene.publish()
      await scene.finish({ complete: 2 })
      expect(scene.node.checkpoints().map(({ size }) => size)).toEqual([3, 5])
    })

    test('to another tree: stops this log only', async () => {
      const log = scene.createLog()
      await scene.sign(log)
      await scene.advanceElsewhere(log, 2, new Uint8Array(32))
      await scene.sign(scene.createLog())
      for (let run = 0; run < 3; run++) {
        expect(await codeOf(scene.publish())).toBe('anchor_conflict')
        scene.node.mine(20)
        await scene.confirm()
      }
      expect(await scene.count()).toEqual({ pending_onchain: 1, complete: 1 })
      expect(scene.lines).toContainEqual(expect.objectContaining({ code: 'anchor_conflict', origin: log.origin }))
      await scene.assertAnchors()
    })
  })

  test.each(['before', 'after'] as const)('publishes each proof once after a crash %s any call', async (when) => {
    await restage({ confirmations: 1, finalityDepth: 1 })
    const log = scene.createLog()
    let total = 0
    for (let at = 1; ; at++) {
      const late = await scene.sign(log, 1, { isPinned: false })
      await scene.sign(log)
      await scene.addProofs(1)
      total += 3
      const crash = createCrash(at, when)
      const { store, chain } = scene.deps
      const anchoring = {
        ...scene.anchoring,
        anchors: crash.wrap(scene.anchoring.anchors),
        pinner: crash.wrap(scene.pinner),
      }
      const died = await scene.publish({ store: crash.wrap(store), chain: crash.wrap(chain), anchoring }).then(
        () => false,
        (error: unknown) => error instanceof Crash,
      )
      expect(died).toBe(!crash.isOver)
      await scene.pin(late)
      await scene.live(3)
      if (!died) break
    }
    expect(total).toBeGreaterThan(60)
    await scene.finish({ complete: total })
  })

  test('concurrent workers on one database send one checkpoint per log', async () => {
    const { options } = publishing.subject
    const other = await openDatabase(options)
    const jobs = await openJobs(other, { pipelineDelayMs: 1000 })
    try {
      for (let log = 0; log < 2; log++) await scene.sign(scene.createLog(), 3)
      await scene.addProofs(2)
      const store = createPublicationStore({ db: other.db, jobs })
      const anchoring = { ...scene.anchoring, anchors: createAnchorStore({ db: other.db }) }
      const publishElsewhere = () => scene.publish({ store, anchoring, chain: scene.connect() })
      await Promise.all([scene.publish(), publishElsewhere(), publishElsewhere()])
      await scene.finish({ complete: 8 })
      expect((await scene.anchors()).map(({ proofs }) => proofs)).toEqual([3, 3])
    } finally {
      await jobs.stop()
      await other.close()
    }
  })

  test('claims no second checkpoint from the same head', async () => {
    const log = scene.createLog()
    const first = await scene.sign(log)
    const second = await scene.sign(log)
    const { store, chain } = scene.deps
    const rows = await publishing.subject.query(`select id from logs where origin = '${log.origin}'`)
    const [{ id: logId }] = rows as [{ id: number }]
    const claim = (nonce: number, slugs: string[], size: number, head: number) =>
      store.claim({
        chainId: chain.chainId,
        account: chain.account,
        nonce,
        contract: scene.node.logWitness,
        calldata: '0x',
        slugs,
        anchor: { published: { logId, id: toIdOf(log), size, block: `0x${'11'.repeat(32)}` }, head },
        transaction: {
          hash: `0x${nonce.toString().padStart(64, '0')}`,
          raw: '0x00',
          kind: 'publish',
          gas: 1n,
          maxFeePerGas: 1n,
          maxPriorityFeePerGas: 1n,
        },
        now: scene.clock.now(),
      })
    const both = await Promise.all([claim(0, first, 3, 0), claim(1, second, 5, 0)])
    expect(both.toSorted()).toEqual([false, true])
    const [size = 0] = await sizes()
    expect(await claim(2, size === 3 ? second : first, 7, size - 1)).toBe(false)
    expect(await claim(2, size === 3 ? second : first, 7, size)).toBe(true)
  })

  test('a worker that freezes between claim and send can only send stored bytes', async () => {
    const log = scene.createLog()
    await scene.sign(log, 2)
    const { chain, frozen, wake } = createFreeze(scene.deps.chain)
    const running = scene.publish({ chain })
    await frozen
    await scene.sign(log)
    await scene.finish({ complete: 3 })
    wake()
    await running
    await scene.finish({ complete: 3 })
    expect(scene.node.checkpoints().map(({ size }) => size)).toEqual([5, 7])
  })

  test('a worker that freezes before the claim publishes nothing twice', async () => {
    await scene.sign(scene.createLog(), 2)
    const begun = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const anchoring = failing({
      async pin(block, options) {
        begun.resolve()
        await gate.promise
        await scene.pinner.pin(block, options)
      },
    })
    const running = scene.publish({ anchoring })
    await begun.promise
    await scene.finish({ complete: 2 })
    gate.resolve()
    expect(await running).toEqual({ waitMs: 2_000 })
    await scene.finish({ complete: 2 })
    expect(scene.node.transactions()).toHaveLength(1)
  })

  describe('switching between events and checkpoints', () => {
    test('continues what is open, and publishes each proof once', async () => {
      const log = scene.createLog()
      await scene.sign(log, 2)
      await scene.addProofs(1)
      await scene.publish(events)
      await scene.sign(log, 2)
      await scene.addProofs(1)
      await scene.publish()
      await scene.sign(log, 2)
      await scene.addProofs(1)
      await scene.publish(events)
      expect(await scene.anchors()).toMatchObject([{ nonce: 1, proofs: 2 }])
      expect(await scene.publications()).toMatchObject(
        [3, 2, 1, 3].map((proofs, nonce) => ({ nonce, proofs, status: 'pending' })),
      )
      Object.assign(scene.deps, events)
      await scene.finish({ complete: 9 })
      expect(scene.node.events()).toHaveLength(7)
      Object.assign(scene.deps, { anchoring: scene.anchoring })
      await scene.sign(log, 2)
      await scene.finish({ complete: 11 })
      expect(scene.node.checkpoints()).toHaveLength(2)
    })

    test('workers of both modes at the same time publish each proof once', async () => {
      const log = scene.createLog()
      for (let round = 0; round < 3; round++) {
        await scene.sign(log, 4)
        await scene.addProofs(2)
        await Promise.all([scene.publish(), scene.publish(events), scene.publish(), scene.publish(events)])
        scene.node.mine()
      }
      await scene.finish({ complete: 18 })
    })
  })
})
