import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { MOCK_SENTENCE } from '@countersign/service'
import { afterEach, expect, test } from 'vitest'
import { APP, createTestApp, signBody, signed } from '../../test/http/testApp.ts'
import { CoordinatorError } from '../errors.ts'
import { createHttpServer } from './createHttpServer.ts'
import { stopHttpServer } from './stopHttpServer.ts'

const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** The app behind a server with short limits. */
async function listen(changes: Parameters<typeof createTestApp>[0]) {
  const app = createTestApp(changes)
  const limits = { headersMs: 500, requestMs: 500, answerMs: 200, checkMs: 20 }
  const server = createHttpServer(app.handleRequest, limits)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  /** Resolves when the server has received the headers. */
  async function open(lines: readonly string[], body = '') {
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    socket.on('error', () => {})
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const begun = once(server, 'request')
    socket.write([...lines, 'Host: api.example', `Origin: ${APP}`, '', body].join('\r\n'))
    await begun
    return {
      socket,
      /** Everything that arrived until the server closed the connection. */
      async read() {
        await closed
        return text
      },
    }
  }

  const stop = (patienceMs?: number) => stopHttpServer(server, app.stop, patienceMs === undefined ? {} : { patienceMs })
  return { ...app, open, stop }
}

const cookieOf = ({ jar }: { jar: ReadonlyMap<string, string> }) =>
  `Cookie: ${[...jar].map((pair) => pair.join('=')).join('; ')}`

const SIGN = ['POST /sign/digest HTTP/1.1', 'Content-Type: application/json']

test('cuts off a body sent byte by byte during a stop, and answers a signing that takes longer', async () => {
  const gate = Promise.withResolvers<typeof signed>()
  const { browser, open, stop } = await listen({ deps: { sign: () => gate.promise } })
  const user = browser()
  await user.signIn()
  await user.post('/wallet/provision')
  const body = JSON.stringify(signBody)
  const signing = await open([...SIGN, cookieOf(user), `Content-Length: ${Buffer.byteLength(body)}`], body)
  const trickling = await open([...SIGN, 'Content-Length: 131072'])
  const trickle = setInterval(() => trickling.socket.write(' '), 10)
  let hasStopped = false
  const stopped = stop().then(() => (hasStopped = true))
  try {
    expect(await trickling.read()).not.toContain('200 OK')
  } finally {
    clearInterval(trickle)
  }
  expect(hasStopped).toBe(false)
  gate.resolve(signed)
  expect(await signing.read()).toContain(JSON.stringify(signed))
  await stopped
})

test('sends the whole mock-marked page after a stop has waited for it', async () => {
  const gate = Promise.withResolvers<URL>()
  const { google, open, stop } = await listen({ config: { isMock: true } })
  google.start = () => gate.promise
  const page = await open(['GET /auth/google HTTP/1.1', 'Accept: text/html'])
  const stopped = stop()
  // The stop is waiting for the page now.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  gate.reject(new CoordinatorError('provider_unavailable', 'the provider is unreachable'))
  const text = await page.read()
  expect(text).toContain(MOCK_SENTENCE)
  expect(text).toContain('</html>')
  await stopped
})

test('answers a request that was sent on an idle connection just before the stop, then closes the connection', async () => {
  const { open, stop } = await listen({})
  const caller = await open(['GET /health HTTP/1.1'])
  await once(caller.socket, 'data')
  // When this returns, the kernel has the bytes and the server has not read them.
  caller.socket.write('GET /health HTTP/1.1\r\nHost: api.example\r\n\r\n')
  const stopped = stop()
  const [, first, second] = (await caller.read()).toLowerCase().split('http/1.1 ')
  expect(first).toMatch(/^200 ok.*connection: keep-alive/s)
  expect(second).toMatch(/^200 ok.*connection: close/s)
  await stopped
})

/** A running export, and a stop that waits for it. */
async function stopDuringExport(rest: Promise<void>, patienceMs?: number) {
  async function* toParts() {
    yield new Uint8Array(Buffer.from('first part'))
    await rest
    yield new Uint8Array(Buffer.from('last part'))
  }
  const { browser, open, stop } = await listen({ deps: { exportProofs: async () => toParts() } })
  const user = browser()
  await user.signIn()
  const file = await open(['GET /proofs/export HTTP/1.1', cookieOf(user)])
  await once(file.socket, 'data')
  return { file, stopped: stop(patienceMs) }
}

test('a stop waits for a running export', async () => {
  const gate = Promise.withResolvers<void>()
  const { file, stopped } = await stopDuringExport(gate.promise)
  // The stop is waiting only for the export now.
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
  gate.resolve()
  expect(await file.read()).toContain('last part')
  await stopped
})

test('a stop cuts off an export that takes too long', async () => {
  const { file, stopped } = await stopDuringExport(new Promise(() => {}), 50)
  await stopped
  expect(await file.read()).not.toContain('last part')
})
