import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { createSimulator } from '@countersign/attestation/simulator'
import { createSimulatedQuoteSource, EvidenceError, type QuoteSource } from '@countersign/evidence'
import {
  computeTdxReportData,
  fromHex,
  type Hex,
  hashLeaf,
  hashTree,
  type SignItem,
  type SignItemsResponse,
  toHex,
} from '@countersign/protocol'
import { createLog } from '@countersign/service'
import { createTx, toDigest } from '@countersign/testing/stack'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { beacon, createRound } from '../../test/beacon.ts'
import { createKnownTime } from '../../test/time/time.ts'
import { permit } from '../../test/typedData.ts'
import { createWitness, satelliteKey } from '../../test/witness.ts'
import { toSidHash } from '../grant/grant.ts'
import { toOwner } from '../keys/deriveKey.ts'
import { createKeyWorker, type KeyWorker } from '../keys/keyWorker.ts'
import { createPolicyTexts } from '../vault/policyMemory.ts'
import { createBatcher } from './batch.ts'
import { createSamples } from './samples.ts'
import { type SignItemsDeps, signItems } from './signItems.ts'

const NOW = Date.UTC(2026, 5, 15, 12)
const implementation: Hex = `0x${'77'.repeat(20)}`
const configHash = new Uint8Array(32).fill(0xcc)
const bootId = new Uint8Array(16).fill(3)
const sid = 'ab'.repeat(32)
const coordinatorKey = 'cd'.repeat(32)
const simulator = createSimulator({ at: new Date(NOW) })

let keyWorker: KeyWorker
let granted: { sid: string; grant: string; keyId: string }
let lines: string[]
let reportData: Uint8Array[]

beforeAll(async () => {
  const rootSecret = new Uint8Array(32).map((_, index) => index)
  keyWorker = await createKeyWorker({ rootSecret, configHash, implementations: [implementation] })
  const identity = { issuer: 'https://issuer.example', subject: 'alice', email: null }
  const session = { owner: toOwner(identity), identity, clientKey: null, sidHash: toSidHash(sid), exp: NOW + 60_000 }
  const { grant, keyId } = await keyWorker.openGrant(session)
  granted = { sid, grant, keyId }
})
afterAll(() => keyWorker.close())
beforeEach(() => {
  lines = []
  reportData = []
})

function createDeps(quoteSource?: QuoteSource, limit = 256): SignItemsDeps {
  const time = createKnownTime({ now: () => NOW })
  const simulated = createSimulatedQuoteSource({ simulator, latencyMs: 0 })
  const getQuote: QuoteSource['getQuote'] = (data) => {
    reportData.push(data)
    return simulated.getQuote(data)
  }
  return {
    keyWorker,
    batcher: createBatcher({
      quoteSource: quoteSource ?? { mode: 'mock', getQuote },
      bootId,
      configHash,
      limit,
      log: createLog(
        (line) => lines.push(line),
        () => NOW,
      ),
    }),
    samples: createSamples({
      sources: [
        { kind: 'satellite', key: satelliteKey },
        { kind: 'drand', ...beacon },
      ],
      time,
    }),
    time,
    policyTexts: createPolicyTexts(),
  }
}

const sample = () => ({ ...granted, witness: createWitness(NOW) })
const toMessage = (message: Hex): SignItem => ({ ...sample(), kind: 'message', content: { message } })
const toTypedData = (): SignItem => ({ ...sample(), kind: 'typed-data', content: permit })
const toAuthorization = (nonce = 0): SignItem => ({
  ...sample(),
  kind: 'authorization',
  authorization: { chainId: 1, address: implementation, nonce },
})
const toTransaction = (nonce: number, statementVersion: 1 | 2): SignItem => {
  const txMetadata = createTx(nonce)
  return { ...sample(), kind: 'transaction', digest: toDigest(txMetadata), txMetadata, statementVersion }
}
const outcomesOf = ({ results }: SignItemsResponse) =>
  results.map((result) =>
    'error' in result ? result.error : 'subject' in result ? result.statement.kind : 'version 1',
  )

describe('many items in one call', () => {
  /** A key worker that records its calls and then does what the test says. */
  function createAsked(sign: KeyWorker['sign']) {
    const nonces: unknown[] = []
    const asked: KeyWorker = {
      ...keyWorker,
      sign(item, parameters) {
        nonces.push(item.kind === 'transaction' ? item.txMetadata.nonce : undefined)
        return sign(item, parameters)
      },
    }
    return { nonces, deps: { ...createDeps(), keyWorker: asked } }
  }
  const items = (length = 80) => Array.from({ length }, (_, nonce) => toTransaction(nonce, 2))

  test.each([
    [80, [32, 64, 80]],
    [21, [11, 21, 21]],
    [9, [8, 9, 9]],
    [8, [8, 8, 8]],
  ])('%i are verified in groups of 8 to 32, so that other calls run in between', async (count, expected) => {
    const { nonces, deps } = createAsked(keyWorker.sign)
    const seen: number[] = []
    const signing = signItems(deps, { items: items(count), coordinatorKey })
    for (const _ of expected) {
      seen.push(nonces.length)
      await setImmediate()
    }
    expect(seen).toEqual(expected)
    const { results } = await signing
    expect(results.map((result) => 'subject' in result && 'nonce' in result.subject && result.subject.nonce)).toEqual([
      ...Array(count).keys(),
    ])
    expect(nonces).toEqual([...Array(count).keys()])
  })

  test('the next quote waits for them unless one takes long', async () => {
    const expected: number[] = []
    const deps = createDeps()
    const batcher = {
      ...deps.batcher,
      expect(count: number) {
        expected.push(count)
        return deps.batcher.expect(count)
      },
    }
    await signItems({ ...deps, batcher }, { items: items(9), coordinatorKey })
    await signItems({ ...deps, batcher }, { items: [...items(1), toTypedData()], coordinatorKey })
    expect(expected).toEqual([9, Number.POSITIVE_INFINITY])
  })

  test('fail with their call if the key worker fails in any group', async () => {
    for (const failing of [0, 33, 79]) {
      const { deps } = createAsked(async (item, parameters) => {
        if (item.kind === 'transaction' && item.txMetadata.nonce === failing)
          throw new Error('the key worker has ended')
        return keyWorker.sign(item, parameters)
      })
      await expect(signItems(deps, { items: items(), coordinatorKey })).rejects.toThrow('the key worker has ended')
    }
  })
})

describe('items of all kinds in one call', () => {
  test('share one tree and one quote, each in its order and version', async () => {
    const items = [toTransaction(0, 1), toMessage('0x6869'), toTransaction(1, 2), toTypedData(), toAuthorization()]
    const answer = await signItems(createDeps(), { items, coordinatorKey })
    expect(outcomesOf(answer)).toEqual(['version 1', 'off-chain', 'transaction', 'off-chain', 'authorization'])
    const [batch, ...others] = answer.batches
    expect([batch?.leaves.length, others]).toEqual([5, []])
    const leaves = answer.results.map((result) => ('error' in result ? '' : toHex(hashLeaf(result.statement))))
    expect(batch?.leaves).toEqual(leaves)
    const covered = computeTdxReportData({
      treeSize: 5,
      root: hashTree(leaves.map(fromHex)),
      bootId,
      batchSequence: 0,
      previousBatchHash: new Uint8Array(32),
      configHash,
    })
    expect(reportData.map(toHex)).toEqual([toHex(covered)])
  })

  test('only off-chain kinds return an opening, and leaves are not returned', async () => {
    const items = [toTransaction(0, 1), toMessage('0x6869'), toTransaction(1, 2), toTypedData(), toAuthorization()]
    const { results } = await signItems(createDeps(), { items, coordinatorKey })
    const members = results.map((result) => Object.keys(result).sort())
    const [version1, version2] = [
      ['batch', 'leafIndex', 'statement'],
      ['batch', 'leafIndex', 'statement', 'subject'],
    ]
    const offChain = ['batch', 'leafIndex', 'opening', 'statement', 'subject']
    expect(members).toEqual([version1, offChain, version2, offChain, version2])
  })

  test('a rejected item of any kind fails alone', async () => {
    const items = [
      toMessage('0x1'),
      toAuthorization(),
      { ...toTypedData(), grant: '' },
      { ...toAuthorization(1), authorization: { chainId: 0, address: implementation, nonce: 0 } } as SignItem,
      { ...toAuthorization(1), authorization: { nonce: -1 } } as never,
      { ...toTypedData(), content: { ...permit, primaryType: 'EIP712Domain' } } as SignItem,
      { ...toTypedData(), content: { ...permit, domain: { name: 'x'.repeat(40_000) } } } as SignItem,
      toTypedData(),
    ]
    expect(outcomesOf(await signItems(createDeps(), { items, coordinatorKey }))).toEqual([
      'invalid_message',
      'authorization',
      'grant_invalid',
      'authorization_not_allowed',
      'invalid_request',
      'invalid_typed_data',
      'message_too_large',
      'off-chain',
    ])
  })

  test('are split into several batches if a quote covers fewer', async () => {
    const items = [toMessage('0x00'), toMessage('0x01'), toTransaction(0, 1), toTransaction(1, 2), toAuthorization()]
    const { batches, results } = await signItems(createDeps(undefined, 2), { items, coordinatorKey })
    expect(batches.map(({ leaves }) => leaves.length)).toEqual([2, 2, 1])
    for (const result of results) {
      if ('error' in result) throw new Error(result.error)
      expect(batches[result.batch]?.leaves[result.leafIndex]).toBe(toHex(hashLeaf(result.statement)))
    }
  })

  test('without a quote neither signatures nor openings are returned', async () => {
    const failing: QuoteSource = {
      mode: 'mock',
      getQuote: () => Promise.reject(new EvidenceError('evidence_busy', 'busy')),
    }
    const items = [toMessage('0x6869'), toTypedData(), toAuthorization(), toTransaction(0, 2)]
    const answer = await signItems(createDeps(failing), { items, coordinatorKey })
    expect(answer).toEqual({ batches: [], results: items.map(() => ({ error: 'quote_unavailable' })) })
    expect(lines.join()).toContain('Could not quote a batch')
    expect(lines.join()).not.toMatch(/6869|permit|opening|salt/i)
  })
})

describe('samples', () => {
  test('rejects a message with a used sample and signs it with a new one; repeats authorizations and transactions', async () => {
    const deps = createDeps()
    const items = [toMessage('0x6869'), toTypedData(), toAuthorization(), toTransaction(0, 2)]
    expect(outcomesOf(await signItems(deps, { items, coordinatorKey }))).toEqual([
      'off-chain',
      'off-chain',
      'authorization',
      'transaction',
    ])
    expect(outcomesOf(await signItems(deps, { items, coordinatorKey }))).toEqual([
      'entropy_used',
      'entropy_used',
      'authorization',
      'transaction',
    ])
    expect(outcomesOf(await signItems(deps, { items: [toMessage('0x6869')], coordinatorKey }))).toEqual(['off-chain'])
  })

  test('one sample in several items of one call serves only one of them', async () => {
    const { witness } = sample()
    const items = [toAuthorization(), toAuthorization(1), toMessage('0x00'), toTransaction(0, 1)].map((item) => ({
      ...item,
      witness,
    }))
    // They are verified concurrently, and the first to finish gets it.
    const outcomes = outcomesOf(await signItems(createDeps(), { items, coordinatorKey }))
    expect(outcomes.filter((outcome) => outcome === 'entropy_used')).toHaveLength(3)
    expect(outcomes).toHaveLength(4)
  })

  test('a beacon’s round serves everything of version 2, and nothing of version 1', async () => {
    const witness = createRound(NOW)
    const items = [toTransaction(0, 1), toTransaction(0, 2), toMessage('0x00'), toTypedData(), toAuthorization()].map(
      (item) => ({ ...item, witness }),
    )
    expect(outcomesOf(await signItems(createDeps(), { items, coordinatorKey }))).toEqual([
      'entropy_refused',
      'transaction',
      'off-chain',
      'off-chain',
      'authorization',
    ])
  })
})

test('1,000 random messages: no part of them, their digests, signatures or salts is public or in the log', async () => {
  const deps = createDeps()
  for (let call = 0; call < 10; call++) {
    const items = Array.from({ length: 100 }, () => toMessage(`0x${randomBytes(32).toString('hex')}`))
    const { batches, results } = await signItems(deps, { items, coordinatorKey })
    const published = JSON.stringify([batches, results.map((result) => ({ ...result, opening: undefined })), lines])
    for (const [index, result] of results.entries()) {
      if (!('opening' in result) || result.opening === undefined) throw new Error('no opening')
      const { content, signature } = result.opening
      if (typeof content === 'string' || typeof signature === 'string') throw new Error('a half is missing')
      const message = (items[index] as { content: { message: Hex } }).content.message.slice(2)
      const secrets = [message, content.digest.slice(2), content.salt, signature.salt, signature.signature.slice(2)]
      for (const secret of secrets) expect(published.includes(secret)).toBe(false)
    }
  }
})
