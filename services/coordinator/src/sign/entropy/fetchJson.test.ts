import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import { type Fetch, fetchJson } from './fetchJson.ts'

let server: Server | undefined

afterEach(async () => {
  const closed = new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
  server?.closeAllConnections()
  await closed
  server = undefined
})

async function serve(listener: RequestListener): Promise<string> {
  const started = createServer(listener)
  server = started
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(started.address() as AddressInfo).port}`
}

const json = { 'content-type': 'application/json' }
const cutShort = (response: ServerResponse) =>
  void response.writeHead(200, { ...json, 'content-length': '9' }).write('{}', () => response.destroy())
const big = (length: number) => JSON.stringify('x'.repeat(length - 2))

test.each<[string, RequestListener]>([
  ['status', (_, response) => response.writeHead(500, json).end('{}')],
  ['status', (_, response) => response.writeHead(204).end()],
  ['unauthorized', (_, response) => response.writeHead(401, json).end('{}')],
  ['content_type', (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('{}')],
  ['content_type', (_, response) => response.writeHead(200).end('{}')],
  ['malformed', (_, response) => response.writeHead(200, json).end('{"samples":')],
  ['malformed', (_, response) => response.writeHead(200, json).end()],
  ['size', (_, response) => response.writeHead(200, json).end(big(1_048_577))],
  [
    'size',
    (_, response) => response.writeHead(200, { ...json, 'content-encoding': 'gzip' }).end(gzipSync(big(2 ** 21))),
  ],
  ['unreachable', (_, response) => response.writeHead(302, { location: '/elsewhere' }).end()],
  ['unreachable', (_, response) => cutShort(response)],
])('%s', async (code, listener) => {
  const paths: (string | undefined)[] = []
  const url = await serve((request, response) => {
    paths.push(request.url)
    listener(request, response)
  })
  await expect(fetchJson({ fetch }, { url, timeoutMs: 5_000 })).rejects.toMatchObject({ code })
  expect(paths).toEqual(['/'])
})

test('reconnects once if the source closes the connection', async () => {
  const asked: (string | undefined)[] = []
  const url = await serve((request, response) => {
    asked.push(request.url)
    if (asked.length === 2) request.socket.destroy()
    else response.writeHead(200, json).end('{}')
  })
  const get = () => fetchJson({ fetch }, { url, timeoutMs: 5_000 })
  await get()
  expect(await get()).toEqual({})
  expect(asked).toEqual(['/', '/', '/'])
})

test.each([
  ['what is asked twice at most', undefined, 2],
  ['what is posted once', {}, 1],
])('returns unreachable if a source closes every connection: %s', async (_name, body, times) => {
  let asked = 0
  const url = await serve((request) => {
    asked++
    request.socket.resetAndDestroy()
  })
  const exchange = fetchJson({ fetch }, { url, timeoutMs: 5_000, ...(body && { body }) })
  await expect(exchange).rejects.toMatchObject({ code: 'unreachable', details: 'ECONNRESET' })
  expect(asked).toBe(times)
})

test('reads 1 MiB', async () => {
  const url = await serve((_, response) => void response.writeHead(200, json).end(big(1_048_576)))
  expect(await fetchJson({ fetch }, { url, timeoutMs: 5_000 })).toHaveLength(1_048_574)
})

test.each<[string, RequestListener]>([
  ['never answers', () => {}],
  ['responds byte by byte', (_, response) => void response.writeHead(200, json).write('{')],
])('abandons a source that %s after the time limit and closes its connection', async (_name, listener) => {
  const url = await serve(listener)
  let signal: AbortSignal | null | undefined
  const observed: Fetch = (input, init) => {
    signal = init?.signal
    return fetch(input, init)
  }
  await expect(fetchJson({ fetch: observed }, { url, timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' })
  expect(signal?.aborted).toBe(true)
})

test('the time limit applies even if fetch ignores its signal', async () => {
  const deaf: Fetch = () => new Promise(() => {})
  const call = fetchJson({ fetch: deaf }, { url: 'http://127.0.0.1', timeoutMs: 10 })
  await expect(call).rejects.toMatchObject({ code: 'timeout' })
})

test('an error contains neither the URL nor the body', async () => {
  const url = 'http://user:hunter2@127.0.0.1:1/'
  const error: unknown = await fetchJson({ fetch }, { url, timeoutMs: 5_000, body: { secret: 'hunter2' } }).catch(
    (reason) => reason,
  )
  expect(error).toMatchObject({ code: 'unreachable' })
  expect((error as Error).cause).toBeUndefined()
  expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain('hunter2')
})
