import type { Hex } from '@countersign/protocol'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  codeOf,
  createScene,
  DEADLINE_MS,
  publisher,
  publisherKey,
  type Scene,
  startTestPublishing,
  type TestPublishing,
} from '../../test/publish/publishing.ts'
import { ChainError } from './chain/chainError.ts'
import type { Chain } from './chain/viemChain.ts'
import { withMargin } from './send.ts'

const HOUR_MS = 3_600_000

describe('proofs that cannot be published now', () => {
  let publishing: TestPublishing
  let scene: Scene
  beforeAll(async () => {
    publishing = await startTestPublishing()
  })
  afterAll(() => publishing.stop())
  beforeEach(async () => {
    scene = await createScene(publishing)
  })

  /** One proof per publication. */
  const publishSingly = () => sql`update proofs set publish_limit = 1`.execute(publishing.subject.database.db)
  const countPublications = async () => (await scene.publications()).length

  describe('the daily gas limit', () => {
    const GAS = 100_000n
    const gasPerDay = 2n * withMargin(GAS)
    const createFixed = (): Chain => ({ ...scene.deps.chain, estimateGas: async () => GAS })

    test('publishes three days’ gas in three days without failures', async () => {
      await scene.addProofs(6)
      await publishSingly()
      const chain = createFixed()
      const counts: number[] = []
      for (let hour = 0; hour < 72; hour++) {
        await codeOf(scene.publish({ chain, gasPerDay }))
        counts.push(await countPublications())
        scene.pass(HOUR_MS)
      }
      expect([counts[0], counts[23], counts[24], counts[47], counts[48]]).toEqual([2, 2, 4, 4, 6])
      expect(await scene.count()).toEqual({ pending_onchain: 6 })
    })

    test('does not fail proofs that waited for gas after an hour’s outage', async () => {
      await scene.addProofs(6)
      await publishSingly()
      const chain = createFixed()
      await codeOf(scene.publish({ chain, gasPerDay }))
      scene.pass(DEADLINE_MS + HOUR_MS)
      scene.node.setFault('down')
      for (let quarter = 0; quarter < 5; quarter++) {
        expect(await codeOf(scene.publish({ chain, gasPerDay }))).toBe('chain_unavailable')
        scene.pass(HOUR_MS / 4)
      }
      expect(await scene.count()).toEqual({ pending_onchain: 6 })
      scene.pass(DEADLINE_MS)
      expect(await codeOf(scene.publish({ chain, gasPerDay }))).toBe('chain_unavailable')
      expect(await scene.count()).toEqual({ pending_onchain: 2, onchain_failed: 4 })
    })
  })

  test('does not count the chain as failing if a claim succeeded', async () => {
    await scene.addProofs(4)
    await publishSingly()
    scene.pass(DEADLINE_MS + 1)
    const { chain } = scene.deps
    let claims = 0
    const failing: Chain = {
      ...chain,
      getFees: () => (claims++ % 2 === 0 ? chain.getFees() : Promise.reject(new ChainError('chain_unavailable'))),
    }
    for (let run = 1; run <= 3; run++) {
      expect(await codeOf(scene.publish({ chain: failing }))).toBe('chain_unavailable')
      expect(await countPublications()).toBe(run)
      scene.pass(HOUR_MS)
    }
    expect(await scene.count()).toEqual({ pending_onchain: 4 })
  })

  test('is not blocked by a nonce that another sender used if the node checks the balance first', async () => {
    await scene.claimOnly(1)
    await scene.node.sendFromElsewhere({ privateKey: publisherKey })
    const { chain, store } = scene.deps
    const [used] = await store.findOpen(chain.chainId)
    const poor: Chain = {
      ...chain,
      send: (raw) =>
        raw === used?.transactions[0]?.raw ? Promise.reject(new ChainError('insufficient_funds')) : chain.send(raw),
    }
    await scene.addProofs(1)
    expect(await codeOf(scene.publish({ chain: poor }))).toBe('none')
    expect(await countPublications()).toBe(2)
  })

  test('makes one publication if the account cannot pay, and continues with funds', async () => {
    scene.node.setBalance(publisher, 1n)
    for (let round = 0; round < 4; round++) {
      await scene.addProofs(1)
      const chain = round === 2 ? scene.connect() : scene.deps.chain
      expect(await codeOf(scene.publish({ chain }))).toBe('insufficient_funds')
      await scene.confirm()
    }
    expect(await scene.publications()).toMatchObject([{ proofs: 1, transactions: [{ isSent: false }] }])
    scene.node.setBalance(publisher, 10n ** 18n)
    await scene.publish()
    expect(scene.node.mempool().map(({ nonce }) => nonce)).toEqual([0, 1])
    await scene.finish({ complete: 4 })
  })

  describe('rejected without an error of the contract', () => {
    const createRefusing = (isRefused: (data: Hex) => boolean): Chain => {
      const { chain } = scene.deps
      return {
        ...chain,
        estimateGas: (call) =>
          isRefused(call.data)
            ? Promise.reject(new ChainError('call_reverted', { details: 'no reason' }))
            : chain.estimateGas(call),
      }
    }

    test('one proof waits and the others are published', async () => {
      const proofs = await scene.addProofs(10)
      const hash = proofs[0]?.txHash.slice(2) ?? ''
      expect(await codeOf(scene.publish({ chain: createRefusing((data) => data.includes(hash)) }))).toBe(
        'call_reverted',
      )
      expect((await scene.proofs()).filter(({ publicationId }) => publicationId === null)).toMatchObject([
        { slug: proofs[0]?.slug, status: 'pending_onchain', failure: null },
      ])
      await scene.finish({ complete: 10 })
    })

    test('one proof fails after its deadline, even while others are published', async () => {
      const [bad] = await scene.addProofs(1)
      const hash = bad?.txHash.slice(2) ?? ''
      const chain = createRefusing((data) => data.includes(hash))
      for (let run = 0; run < 3; run++) {
        await scene.addProofs(1)
        expect(await codeOf(scene.publish({ chain }))).toBe('call_reverted')
        expect(await countPublications()).toBe(run + 1)
        expect(await scene.count()).toEqual({ pending_onchain: run + 2 })
        scene.pass(DEADLINE_MS / 2)
      }
      await scene.addProofs(1)
      expect(await codeOf(scene.publish({ chain }))).toBe('call_reverted')
      expect((await scene.proofs()).map(({ failure }) => failure)).toEqual(['publish_deadline', null, null, null, null])
      expect(await codeOf(scene.publish({ chain }))).toBe('none')
    })

    test('occasional rejections do not fail proofs that wait for gas', async () => {
      await scene.addProofs(6)
      await publishSingly()
      let isRefusing = true
      const gasPerDay = 2n * withMargin(100_000n)
      const chain: Chain = {
        ...createRefusing(() => true),
        estimateGas: async () => {
          if (isRefusing) throw new ChainError('call_reverted', { details: 'no reason' })
          return 100_000n
        },
      }
      const publish = () => codeOf(scene.publish({ chain, gasPerDay }))
      expect(await publish()).toBe('call_reverted')
      isRefusing = false
      for (let hour = 0; hour < 23; hour++) {
        expect(await publish()).toBe('gas_budget_spent')
        scene.pass(HOUR_MS)
      }
      isRefusing = true
      scene.pass(2 * HOUR_MS)
      expect(await publish()).toBe('call_reverted')
      expect(await scene.count()).toEqual({ pending_onchain: 6 })
    })

    test('if all proofs are rejected, none fails, and the node is not asked about each', async () => {
      await scene.addProofs(64)
      let count = 0
      const chain = createRefusing(() => {
        count += 1
        return true
      })
      expect(await codeOf(scene.publish({ chain }))).toBe('call_reverted')
      expect([await scene.count(), await scene.publications()]).toEqual([{ pending_onchain: 64 }, []])
      expect(count).toBeLessThan(32)
    })
  })
})
