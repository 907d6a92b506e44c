import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../http/testApp.fake.ts'
import { PinError } from '../ipfs/pinError.ts'
import { createFakeLog } from '../ports.fake.ts'
import { createMemoryStore } from '../store/memoryStore.fake.ts'
import type { Proof } from '../store/types.ts'
import { completeProof } from './completeProof.fake.ts'
import { type WithReceiptsDeps, withReceipts } from './withReceipts.ts'

const golden = new URL('../../../../packages/receipt/spec/golden/receipt.json', import.meta.url)
const receipt = new Uint8Array(readFileSync(golden))
const held: Proof = { ...completeProof, receipt, ipfsCid: toCid(receipt), isFinal: true }
const dropped: Proof = { ...held, receipt: null, isDropped: true }
const { slug } = held
const unavailable = { code: 'receipt_unavailable' }

function create(changes: Partial<WithReceiptsDeps> = {}) {
  const memory = createMemoryStore()
  memory.rows.proofs.set(slug, dropped)
  const log = createFakeLog()
  const asked: string[] = []
  const store = withReceipts({
    store: memory,
    log,
    async readBlock(cid) {
      asked.push(cid)
      return receipt
    },
    ...changes,
  })
  return { store, memory, log, asked }
}

describe('proofs whose receipt is on IPFS alone', () => {
  test('it is read by its CID; of others, nothing is read', async () => {
    const { store, memory, asked } = create()
    expect(await store.findProof(slug)).toEqual({ ...dropped, receipt })
    expect(asked).toEqual([held.ipfsCid])
    memory.rows.proofs.set(slug, held)
    expect(await store.findProof(slug)).toBe(held)
    expect([await store.findProof('nothing'), asked.length]).toEqual([undefined, 1])
  })

  test('many readers of one share one read; the next reads again', async () => {
    const { promise, resolve } = Promise.withResolvers<Uint8Array<ArrayBuffer>>()
    let reads = 0
    const { store } = create({
      readBlock() {
        reads += 1
        return promise
      },
    })
    const reading = Promise.all(Array.from({ length: 1_000 }, () => store.findProof(slug)))
    resolve(receipt)
    expect(new Set((await reading).map((proof) => proof?.receipt))).toEqual(new Set([receipt]))
    expect(reads).toBe(1)
    await store.findProof(slug)
    expect(reads).toBe(2)
  })

  test('no more than 32 are read at one time, and no more than 512 wait', async () => {
    const { promise, resolve } = Promise.withResolvers<Uint8Array<ArrayBuffer>>()
    let reads = 0
    const { store, memory } = create({
      readBlock() {
        reads += 1
        return promise
      },
    })
    const slugs = Array.from({ length: 600 }, () => randomBytes(16).toString('base64url'))
    for (const one of slugs) memory.rows.proofs.set(one, { ...dropped, slug: one, ipfsCid: `cid of ${one}` })
    const reading = Promise.allSettled(slugs.map((one) => store.findProof(one)))
    await new Promise((done) => setImmediate(() => setImmediate(done)))
    expect(reads).toBe(32)
    resolve(receipt)
    const results = await reading
    const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    expect(refused).toHaveLength(600 - 544)
    for (const reason of refused) expect(reason).toMatchObject(unavailable)
  })

  test.each([
    new PinError('pin_not_found'),
    new PinError('pin_unavailable'),
    new PinError('pin_mismatch', { details: 'gateway: other bytes' }),
    new TypeError('anything'),
  ])('what IPFS does not give back is unavailable: %s', async (error) => {
    const { store, log } = create({ readBlock: () => Promise.reject(error) })
    await expect(store.findProof(slug)).rejects.toMatchObject(unavailable)
    expect(log.lines).toHaveLength(1)
  })

  test('a node that never answers is given up', async () => {
    const { store } = create({ readBlock: () => new Promise(() => {}), timeoutMs: 5 })
    await expect(store.findProof(slug)).rejects.toMatchObject(unavailable)
  })

  test('a coordinator without a node says so', async () => {
    const { store } = create({ readBlock: undefined })
    await expect(store.findProof(slug)).rejects.toMatchObject({ ...unavailable, details: /no IPFS node/ })
  })
})

describe('GET /proof/:slug of a receipt that is on IPFS alone', () => {
  function start(readBlock: NonNullable<WithReceiptsDeps['readBlock']>) {
    const app = createTestApp({ deps: { readBlock } })
    const set = (proof: Proof) => void app.store.rows.proofs.set(slug, proof)
    return { ...app, set }
  }

  test('body, ETag and headers are what they were, and 304 for the tag from before', async () => {
    const before = start(async () => receipt)
    before.set(held)
    const expected = await before.request(`/proof/${slug}`)
    // Another process, which has kept nothing.
    const after = start(async () => receipt)
    after.set(dropped)
    const answer = await after.request(`/proof/${slug}`)
    expect([answer.status, await answer.text()]).toEqual([200, await expected.text()])
    for (const name of ['etag', 'cache-control', 'content-type']) {
      expect(answer.headers.get(name)).toBe(expected.headers.get(name))
    }
    const headers = { 'if-none-match': expected.headers.get('etag') ?? '' }
    expect((await after.request(`/proof/${slug}`, { headers })).status).toBe(304)
  })

  test('it is read from IPFS once, and answered from memory then', async () => {
    let reads = 0
    const { request, set } = start(async () => {
      reads += 1
      return receipt
    })
    set(dropped)
    for (let count = 0; count < 3; count++) expect((await request(`/proof/${slug}`)).status).toBe(200)
    expect(reads).toBe(1)
  })

  test('while IPFS does not answer: 503 with Retry-After, for the stream too; then it is there again', async () => {
    let isDown = true
    const { request, set, openEvents } = start(async () => {
      if (isDown) throw new PinError('pin_unavailable')
      return receipt
    })
    set(dropped)
    for (const init of [{}, { method: 'HEAD' }]) {
      for (const path of [`/proof/${slug}`, `/proof/${slug}/events`]) {
        const answer = await request(path, init)
        expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
        expect(answer.headers.get('cache-control')).toBe('no-store')
      }
    }
    expect(await (await request(`/proof/${slug}`)).json()).toMatchObject({
      code: 'receipt_unavailable',
      retryable: true,
    })
    isDown = false
    expect((await request(`/proof/${slug}`)).status).toBe(200)
    const { next } = await openEvents(`/proof/${slug}/events`)
    expect((await next())?.data?.receipt).toEqual(JSON.parse(readFileSync(golden, 'utf8')))
  })
})
