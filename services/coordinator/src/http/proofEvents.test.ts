import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { AttestationReceiptV1 } from '@countersign/receipt'
import { afterEach, describe, expect, test } from 'vitest'
import { codeOf, createTestApp, readEvents } from '../../test/http/testApp.ts'
import { toCompleteProof } from '../../test/proofs/completeProof.ts'
import type { Proof } from '../store/proofs.ts'
import { createHttpServer, type HttpServer } from './createHttpServer.ts'

const golden = new URL('../../../../packages/receipt/spec/golden/receipt.json', import.meta.url)
const receipt = JSON.parse(readFileSync(golden, 'utf8').replace('"0.1.0"', '"é€😀"')) as AttestationReceiptV1

const complete = toCompleteProof(receipt)
const { slug } = complete
const path = `/proof/${slug}/events`
const pinned: Proof = { ...complete, status: 'pending_onchain', onchainTxHash: null, onchainBlockNumber: null }
const pending: Proof = { ...pinned, status: 'pending_pin', ipfsCid: null, receipt: null }

/** Lets all pending promises settle. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

function createApp(...args: Parameters<typeof createTestApp>) {
  const test = createTestApp(...args)
  test.store.rows.proofs.set(slug, pending)
  const move = async (proof: Proof) => {
    // The previous round has ended, and the next one has its timer.
    await settle()
    test.store.rows.proofs.set(slug, proof)
    test.time.pass(1000)
  }
  return { ...test, move }
}

/** Not `once` of node:events, which rejects if a reset arrives first. */
const untilClosed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

describe('GET /proof/:slug/events', () => {
  test('sends the proof immediately and after each change, and ends after a terminal status', async () => {
    const { request, openEvents, move } = createApp()
    const etagOf = async () => (await request(`/proof/${slug}`)).headers.get('etag')?.replaceAll('"', '')
    const { response, next } = await openEvents(path)
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
      'x-content-type-options': 'nosniff',
    })
    const first = await next()
    expect(first).toEqual({
      retry: '4000',
      event: 'proof',
      id: await etagOf(),
      data: await (await request(`/proof/${slug}`)).json(),
    })
    expect(first?.data?.status).toBe('pending_pin')
    await move(pinned)
    expect(await next()).toEqual({ event: 'proof', id: await etagOf(), data: expect.objectContaining({ receipt }) })
    expect(receipt.signer.config.version).toBe('é€😀')
    await move(complete)
    expect(await next()).toMatchObject({ id: await etagOf(), data: { status: 'complete', onchainBlockNumber: 5 } })
    expect(await next()).toBeUndefined()
  })

  test.each(['complete', 'pin_failed', 'onchain_failed'] as const)('%s is one event, then the end', async (status) => {
    const { openEvents, store, time } = createApp()
    store.rows.proofs.set(slug, { ...complete, status })
    const { next } = await openEvents(path)
    expect((await next())?.data?.status).toBe(status)
    expect(await next()).toBeUndefined()
    expect(time.delays()).toEqual([])
  })

  test('returns 204 to a browser that has the last event, but not after an earlier one', async () => {
    const { request, openEvents, store, time } = createApp()
    store.rows.proofs.set(slug, complete)
    const id = (await (await openEvents(path)).next())?.id ?? ''
    const again = await request(path, { headers: { 'last-event-id': id } })
    expect([again.status, await again.text()]).toEqual([204, ''])
    for (const other of ['', 'x', `"${id}"`, id.slice(1)]) {
      const { response, next } = await openEvents(path, { headers: { 'last-event-id': other } })
      expect([response.status, (await next())?.id]).toEqual([200, id])
    }
    // Sends the current state at once while it is not terminal.
    store.rows.proofs.set(slug, pinned)
    const known = (await request(`/proof/${slug}`)).headers.get('etag')?.replaceAll('"', '') ?? ''
    const { next, cancel } = await openEvents(path, { headers: { 'last-event-id': known } })
    expect((await next())?.id).toBe(known)
    await cancel()
    expect(time.delays()).toEqual([])
  })

  test('sends a heartbeat every 15 s until the end', async () => {
    const { openEvents, time, move } = createApp()
    const { next } = await openEvents(path)
    await next()
    for (let index = 0; index < 3; index++) {
      const beat = next()
      time.pass(15_000)
      expect(await beat).toEqual({ comment: '' })
      await settle()
    }
    expect(time.delays().toSorted()).toEqual([1000, 15_000])
    await move(complete)
    await next()
    expect(await next()).toBeUndefined()
    expect(time.delays()).toEqual([])
  })

  test('a slow reader gets the newest event and no backlog of heartbeats', async () => {
    const { openEvents, move, time } = createApp()
    const { next } = await openEvents(path)
    for (let block = 0; block < 20; block++) {
      await move({ ...pinned, onchainTxHash: `0x${String(block).padStart(64, '0')}` })
      await settle()
      time.pass(15_000)
      await settle()
    }
    expect(await next()).toMatchObject({ retry: '4000', data: { onchainTxHash: `0x${'19'.padStart(64, '0')}` } })
    const waiting = next()
    await move({ ...pinned, onchainTxHash: `0x${'cd'.repeat(32)}` })
    expect(await waiting).toMatchObject({ data: { onchainTxHash: `0x${'cd'.repeat(32)}` } })
    await move(complete)
    await settle()
    expect((await next())?.data?.status).toBe('complete')
    expect(await next()).toBeUndefined()
  })

  test('unknown and malformed slugs return the problem of GET /proof/:slug and take no place', async () => {
    const { request, time } = createApp()
    const same = { headers: { 'x-request-id': 'same' } }
    const expected = await (await request('/proof/BBBBBBBBBBBBBBBBBBBBBA', same)).text()
    for (const text of [
      'BBBBBBBBBBBBBBBBBBBBBA',
      'x',
      `${slug}A`,
      'AAAAAAAAAAAAAAAAAAAAAB',
      '%00',
      '%27--',
      '__proto__',
    ]) {
      const response = await request(`/proof/${text}/events`, same)
      expect([response.status, await response.text()]).toEqual([404, expected])
      expect(response.headers.get('content-type')).toBe('application/problem+json')
    }
    expect(time.delays()).toEqual([])
  })

  test('allows 5 streams per address and frees a place as soon as one ends', async () => {
    const { openEvents, request, time } = createApp()
    const leaving = new AbortController()
    const streams = [await openEvents(path, { signal: leaving.signal })]
    while (streams.length < 5) streams.push(await openEvents(path))
    const refused = await request(path)
    expect(refused.headers.get('retry-after')).toBe('4')
    expect(await codeOf(refused)).toBe('429 rate_limited')
    expect(await codeOf(await request(`/proof/${slug}A/events`))).toBe('429 rate_limited')
    expect((await request(`/proof/${slug}`)).status).toBe(200)

    const elsewhere = await openEvents(path, { address: '203.0.113.2' })
    expect(elsewhere.response.status).toBe(200)
    leaving.abort()
    streams.push(await openEvents(path))
    expect(await codeOf(await request(path))).toBe('429 rate_limited')
    await streams[1]?.cancel()
    streams.push(await openEvents(path))
    expect(await codeOf(await request(path))).toBe('429 rate_limited')

    for (const { cancel } of [...streams, elsewhere]) await cancel()
    expect(time.delays()).toEqual([])
  })

  test('the end of a proof frees all places', async () => {
    const { openEvents, request, store, move, time } = createApp()
    for (let index = 0; index < 5; index++) await openEvents(path)
    expect((await request(path)).status).toBe(429)
    await move(complete)
    await settle()
    expect(time.delays()).toEqual([])
    store.rows.proofs.set(slug, pending)
    expect((await openEvents(path)).response.status).toBe(200)
  })

  test('failures take no place', async () => {
    const { openEvents, request, store } = createApp()
    store.isDown = true
    for (let index = 0; index < 10; index++) expect(await codeOf(await request(path))).toBe('503 database_unavailable')
    store.isDown = false
    for (let index = 0; index < 10; index++) expect((await request('/proof/x/events')).status).toBe(404)
    expect((await openEvents(path)).response.status).toBe(200)
  })

  test('a caller that disconnects before the proof is read leaves no place and no timer behind', async () => {
    const { request, openEvents, time } = createApp()
    for (let index = 0; index < 10; index++) {
      const response = await request(path, { signal: AbortSignal.abort() })
      expect([response.status, await response.text()]).toEqual([200, ''])
    }
    expect(time.delays()).toEqual([])
    expect((await openEvents(path)).response.status).toBe(200)
  })

  test('HEAD returns the headers and opens no stream', async () => {
    const { request, time } = createApp()
    for (let index = 0; index < 10; index++) {
      const response = await request(path, { method: 'HEAD' })
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    }
    expect((await request('/proof/x/events', { method: 'HEAD' })).status).toBe(404)
    expect(time.delays()).toEqual([])
  })

  test('opening counts against the proofs’ limit', async () => {
    const off = { sign: 'off', provision: 'off', auth: 'off' } as const
    const { request, openEvents } = createApp({
      config: { rateLimits: { ...off, proof: { count: 1, seconds: 60 } } },
    })
    expect((await openEvents(path)).response.headers.get('ratelimit-remaining')).toBe('0')
    const refused = await request(path)
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(await codeOf(refused)).toBe('429 rate_limited')
  })

  test('any page may read it and send Last-Event-ID', async () => {
    const { request } = createApp()
    const headers = { origin: 'https://elsewhere.example', 'access-control-request-method': 'GET' }
    const preflight = await request(path, { method: 'OPTIONS', headers })
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-headers')).toContain('last-event-id')
  })

  test('stop ends the streams and rejects later ones', async () => {
    const { openEvents, request, stop, time, store } = createApp()
    const [read, unread] = [await openEvents(path), await openEvents(path)]
    await read.next()
    let go = () => {}
    const gate = new Promise<void>((resolve) => (go = resolve))
    const { findProof } = store
    store.findProof = (wanted) => gate.then(() => findProof(wanted))
    const late = request(path)
    await settle()
    const stopped = stop()
    go()
    await stopped
    expect(await codeOf(await late)).toBe('503 shutting_down')
    expect(await read.next()).toBeUndefined()
    expect((await unread.next())?.data?.status).toBe('pending_pin')
    expect(await unread.next()).toBeUndefined()
    expect(await codeOf(await request(path))).toBe('503 shutting_down')
    expect(time.delays()).toEqual([])
  })
})

describe('over a socket', () => {
  let server: HttpServer | undefined
  afterEach(async () => {
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
    server = undefined
  })

  async function listen() {
    const test = createApp()
    const sockets: Socket[] = []
    const own = createHttpServer(test.handleRequest).listen(0, '127.0.0.1')
    own.on('connection', (socket: Socket) => sockets.push(socket))
    server = own
    await once(own, 'listening')
    const { port } = own.address() as { port: number }
    return { ...test, port, url: `http://127.0.0.1:${port}${path}`, sockets, server: own }
  }

  test('sends events one by one', async () => {
    const { url, move } = await listen()
    const response = await fetch(url)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const { next } = readEvents(response)
    expect((await next())?.data?.status).toBe('pending_pin')
    await move(pinned)
    expect((await next())?.data?.receipt).toEqual(receipt)
    await move(complete)
    expect((await next())?.data?.status).toBe('complete')
    expect(await next()).toBeUndefined()
  })

  test('a disconnect frees the place, and the last one stops the polling', async () => {
    const { url, sockets, time } = await listen()
    const clients = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const client = new AbortController()
        await readEvents(await fetch(url, { signal: client.signal })).next()
        return client
      }),
    )
    const refused = await fetch(url)
    expect(await codeOf(refused)).toBe('429 rate_limited')
    const closed = sockets.slice(0, 5).map(untilClosed)
    clients[0]?.abort()
    await Promise.race(closed)
    await settle()
    const again = new AbortController()
    const response = await fetch(url, { signal: again.signal })
    expect(response.status).toBe(200)
    const last = sockets.map((socket) => (socket.destroyed ? undefined : untilClosed(socket)))
    for (const client of [...clients, again]) client.abort()
    for (const socket of sockets) socket.destroy()
    await Promise.all(last)
    await settle()
    expect(time.delays()).toEqual([])
  })

  test('a client that does not read costs no memory and then gets the newest event', async () => {
    const { port, sockets, move, store, time } = await listen()
    const client = connect({ port, host: '127.0.0.1' })
    client.pause()
    await once(client, 'connect')
    client.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    while (store.proofReads === 0) await settle()
    const frame = JSON.stringify({ ...pinned, ipfsUrl: '' }).length
    let most = 0
    // More than the operating system buffers for a connection.
    const changes = 1000
    for (let block = 1; block <= changes; block++) {
      await move({ ...pinned, onchainTxHash: `0x${String(block).padStart(64, '0')}` })
      await settle()
      most = Math.max(most, sockets[0]?.writableLength ?? 0)
    }
    // Node's write buffer, and one event before and after it.
    expect([most > 0, most < 65_536 + 2 * frame]).toEqual([true, true])
    await move(complete)
    const chunks: Buffer[] = []
    client.on('data', (chunk: Buffer) => chunks.push(chunk))
    client.resume()
    while (!Buffer.concat(chunks.slice(-2)).includes('\r\n0\r\n\r\n')) await once(client, 'data')
    const text = Buffer.concat(chunks).toString()
    expect(text.split('event: proof').length - 1).toBeLessThan(changes)
    expect(text.lastIndexOf('"status":"complete"')).toBeGreaterThan(text.lastIndexOf('"status":"pending_onchain"'))
    client.destroy()
    expect(time.delays()).toEqual([])
  })

  test('stop ends open streams cleanly before connections close', async () => {
    const { url, stop, server } = await listen()
    const { next } = readEvents(await fetch(url))
    await next()
    const ended = next()
    await stop()
    server.closeAllConnections()
    expect(await ended).toBeUndefined()
  })
})
