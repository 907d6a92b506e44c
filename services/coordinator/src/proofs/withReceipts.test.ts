import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { ReceiptError, toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../test/http/testApp.ts'
import { createFakeLog } from '../../test/ports.ts'
import { completeProof } from '../../test/proofs/completeProof.ts'
import { createMemoryStore } from '../../test/store/memoryStore.ts'
import { CoordinatorError } from '../errors.ts'
import type { RebuildReceipt } from '../publish/assembleReceipt.ts'
import type { Proof } from '../store/proofs.ts'
import { type WithReceiptsDeps, withReceipts } from './withReceipts.ts'

const golden = new URL('../../../../packages/receipt/spec/golden/receipt.json', import.meta.url)
const receipt = new Uint8Array(readFileSync(golden))
const held: Proof = { ...completeProof, receipt, ipfsCid: toCid(receipt), isFinal: true }
const dropped: Proof = { ...held, receipt: null, isDropped: true }
const { slug } = held
const rebuilt = { cid: toCid(receipt), bytes: receipt }
const other = new Uint8Array(Buffer.from('{"version":1}'))
const unavailable = { code: 'receipt_unavailable' }

function create(changes: Partial<WithReceiptsDeps> = {}) {
  const memory = createMemoryStore()
  memory.rows.proofs.set(slug, dropped)
  const log = createFakeLog()
  const asked: string[] = []
  const store = withReceipts({
    store: memory,
    log,
    async rebuild(slug) {
      asked.push(slug)
      return rebuilt
    },
    ...changes,
  })
  return { store, memory, log, asked }
}

describe('proofs whose receipt was deleted from the database', () => {
  test('rebuilds it, and no others', async () => {
    const { store, memory, asked } = create()
    expect(await store.findProof(slug)).toEqual({ ...dropped, receipt })
    expect(asked).toEqual([slug])
    memory.rows.proofs.set(slug, held)
    expect(await store.findProof(slug)).toBe(held)
    expect([await store.findProof('nothing'), asked.length]).toEqual([undefined, 1])
  })

  test('concurrent readers share a rebuild; the next reader starts another one', async () => {
    const { promise, resolve } = Promise.withResolvers<typeof rebuilt>()
    let count = 0
    const { store } = create({
      rebuild() {
        count += 1
        return promise
      },
    })
    const reading = Promise.all(Array.from({ length: 1_000 }, () => store.findProof(slug)))
    resolve(rebuilt)
    expect(new Set((await reading).map((proof) => proof?.receipt))).toEqual(new Set([receipt]))
    expect(count).toBe(1)
    await store.findProof(slug)
    expect(count).toBe(2)
  })

  test('rebuilds at most 2 at a time, and at most 512 wait', async () => {
    const { promise, resolve } = Promise.withResolvers<typeof rebuilt>()
    let count = 0
    const { store, memory } = create({
      rebuild() {
        count += 1
        return promise
      },
    })
    const slugs = Array.from({ length: 600 }, () => randomBytes(16).toString('base64url'))
    for (const one of slugs) memory.rows.proofs.set(one, { ...dropped, slug: one })
    const reading = Promise.allSettled(slugs.map((one) => store.findProof(one)))
    await expect.poll(() => count).toBe(2)
    resolve(rebuilt)
    const refused = (await reading).flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    expect(refused).toHaveLength(600 - 514)
    for (const reason of refused) expect(reason).toMatchObject(unavailable)
  })

  test.each<[string, Awaited<ReturnType<RebuildReceipt>>]>([
    ['with another CID', { cid: toCid(other), bytes: other }],
    ['that cannot be rebuilt', undefined],
  ])('a receipt %s is unavailable', async (_, found) => {
    const { store, log } = create({ rebuild: async () => found })
    await expect(store.findProof(slug)).rejects.toMatchObject(unavailable)
    expect(log.lines).toHaveLength(1)
  })

  test('returns receipt_unavailable if the rows give no receipt, and database_unavailable if the database is down', async () => {
    for (const [error, code, lines] of [
      [new ReceiptError('receipt_too_large', 'too large'), 'receipt_unavailable', 1],
      [new Error('the place in the log is missing'), 'receipt_unavailable', 1],
      [new CoordinatorError('database_unavailable', 'the database does not answer'), 'database_unavailable', 0],
    ] as const) {
      const { store, log } = create({ rebuild: () => Promise.reject(error) })
      await expect(store.findProof(slug)).rejects.toMatchObject({ code })
      expect(log.lines).toHaveLength(lines)
    }
  })

  test('callers that wait longer than the time limit fail', async () => {
    const { store, memory } = create({ rebuild: () => new Promise(() => {}), timeoutMs: 20 })
    const slugs = Array.from({ length: 10 }, () => randomBytes(16).toString('base64url'))
    for (const one of slugs) memory.rows.proofs.set(one, { ...dropped, slug: one })
    const codes = slugs.map((one) => store.findProof(one).catch((error: CoordinatorError) => error.code))
    expect(await Promise.all(codes)).toEqual(slugs.map(() => 'receipt_unavailable'))
  })
})

describe('GET /proof/:slug of a deleted receipt', () => {
  function start(rebuild: RebuildReceipt = async () => rebuilt) {
    const app = createTestApp({ deps: { rebuildReceipt: rebuild } })
    const set = (proof: Proof) => void app.store.rows.proofs.set(slug, proof)
    return { ...app, set }
  }

  test('returns the earlier body, ETag and headers, and 304 for the earlier ETag', async () => {
    const before = start()
    before.set(held)
    const expected = await before.request(`/proof/${slug}`)
    // Another process with an empty cache.
    const after = start()
    after.set(dropped)
    const answer = await after.request(`/proof/${slug}`)
    expect([answer.status, await answer.text()]).toEqual([200, await expected.text()])
    for (const name of ['etag', 'cache-control', 'content-type']) {
      expect(answer.headers.get(name)).toBe(expected.headers.get(name))
    }
    const headers = { 'if-none-match': expected.headers.get('etag') ?? '' }
    expect((await after.request(`/proof/${slug}`, { headers })).status).toBe(304)
  })

  test('is rebuilt once and then returned from memory', async () => {
    let count = 0
    const { request, set } = start(async () => {
      count += 1
      return rebuilt
    })
    set(dropped)
    for (let read = 0; read < 3; read++) expect((await request(`/proof/${slug}`)).status).toBe(200)
    expect(count).toBe(1)
  })

  test('returns 503 with Retry-After if it cannot be rebuilt, also for the stream', async () => {
    let found: typeof rebuilt | undefined
    const { request, set, openEvents } = start(async () => found)
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
    found = rebuilt
    expect((await request(`/proof/${slug}`)).status).toBe(200)
    const { next } = await openEvents(`/proof/${slug}/events`)
    expect((await next())?.data?.receipt).toEqual(JSON.parse(readFileSync(golden, 'utf8')))
  })
})
