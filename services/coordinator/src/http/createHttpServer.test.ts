import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createTestApp } from '../../test/http/testApp.ts'
import { createHttpServer, type ServerLimits } from './createHttpServer.ts'
import type { HandleRequest } from './requestHandler.ts'

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

/** More than the operating system buffers for a caller that doesn't read. */
const LARGE = new Uint8Array(32 * 1024 * 1024)

/** Limits that a test can wait for. */
const SHORT: ServerLimits = { headersMs: 100, requestMs: 200, answerMs: 200, checkMs: 20 }

/** Responses that no handler may return. */
const broken: Readonly<Record<string, HandleRequest>> = {
  '/throws': () => {
    throw new Error('at once')
  },
  '/rejects': () => Promise.reject(new Error('later')),
  '/bad-header': () => ({ status: 200, headers: { 'x-bad': 'two\r\nlines' }, body: '' }),
  '/bad-header-later': async () => ({ status: 200, headers: { 'x-bad': 'two\r\nlines' }, body: '' }),
}

async function listen(limits?: ServerLimits) {
  const { handleRequest, log } = createTestApp()
  const answer: HandleRequest = async (incoming, getSignal) =>
    incoming.url === '/large' ? { status: 200, headers: {}, body: LARGE } : handleRequest(incoming, getSignal)
  const answerAny: HandleRequest = (incoming, getSignal) => (broken[incoming.url ?? ''] ?? answer)(incoming, getSignal)
  const server = createHttpServer(answerAny, limits).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const sockets: Socket[] = []
  stops.push(() => {
    for (const socket of sockets) socket.destroy()
    server.closeAllConnections()
    server.close()
  })

  function open(bytes: string): Socket {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => {})
    socket.write(bytes)
    return socket
  }

  /** Everything that arrives until the server closes the connection. */
  async function readToEnd(socket: Socket): Promise<string> {
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString('latin1')))
    // Not `once` of node:events, which rejects if a reset arrives first. A reset is also a way to end the connection.
    await new Promise((resolve) => socket.once('close', resolve))
    return text
  }

  return { server, log, open, readToEnd }
}

const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n${more}\r\n`

test.each([
  ['nothing at all', ''],
  ['half of the headers', 'GET /health HTTP/1.1\r\nHost: api.example\r\nX-A: '],
  ['half of the body', 'POST /wallet/provision HTTP/1.1\r\nHost: api.example\r\nContent-Length: 10\r\n\r\n{'],
])('who sends %s is cut off', async (_, bytes) => {
  const { open, readToEnd } = await listen(SHORT)
  expect(await readToEnd(open(bytes))).not.toContain('200 OK')
})

test('cuts off a caller that does not read the response', async () => {
  const { server, open } = await listen(SHORT)
  const closed = new Promise<void>((resolve) => server.once('connection', (socket) => socket.once('close', resolve)))
  open(get('/large')).pause()
  await closed
})

test('does not wait for an unread body', async () => {
  const { open, readToEnd } = await listen()
  const head = 'POST /nothing HTTP/1.1\r\nHost: api.example\r\nContent-Length: 10\r\n\r\n'
  expect(await readToEnd(open(head))).toMatch(/^HTTP\/1\.1 404 /)
})

test('a caller that reads gets the whole response', async () => {
  const { open, readToEnd } = await listen()
  expect((await readToEnd(open(get('/large')))).length).toBeGreaterThan(LARGE.length)
})

test.each([
  ['a Host with a user', 'GET /health HTTP/1.1\r\nHost: a@b\r\nConnection: close\r\n\r\n'],
  ['a Host with a space', 'GET /health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n'],
  ['a backslash in the path', get('/\\evil.example')],
  ['an invalid absolute form', get('http://[')],
  ['the asterisk form', get('*').replace('GET', 'OPTIONS')],
])('%s is a problem like any other, and a line in the log', async (_, bytes) => {
  const { open, readToEnd, log } = await listen()
  const answer = await readToEnd(open(bytes))
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer).toContain('content-type: application/problem+json')
  expect(answer).toContain('x-content-type-options: nosniff')
  expect(answer).toContain('strict-transport-security')
  const { requestId, ...problem } = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
  expect(problem).toMatchObject({ status: 400, code: 'invalid_request', retryable: false })
  expect(log.lines).toMatchObject([{ msg: 'Answered', requestId, status: 400, code: 'invalid_request' }])
})

test('rejects two Host headers (RFC 9112 §3.2) in any case, and accepts one', async () => {
  const { open, readToEnd } = await listen()
  expect(await readToEnd(open(get('/health')))).toMatch(/^HTTP\/1\.1 200 /)
  const answer = await readToEnd(open(get('/health', 'hOsT: evil.example\r\n')))
  expect(answer).toMatch(/^HTTP\/1\.1 400 /)
  expect(answer).toContain('"code":"invalid_request"')
})

test('rejects headers above 16 KiB before any route', async () => {
  const { open, readToEnd } = await listen()
  expect(await readToEnd(open(get('/health', `X-A: ${'a'.repeat(17_000)}\r\n`)))).toMatch(/^HTTP\/1\.1 431 /)
})

test.each(Object.keys(broken))('a failure in a response ends only its connection: %s', async (path) => {
  const { server, open, readToEnd } = await listen()
  expect(await readToEnd(open(get(path)))).toBe('')
  expect(await readToEnd(open(get('/health')))).toMatch(/^HTTP\/1\.1 200 /)
  expect(server.answers.size).toBe(0)
})
