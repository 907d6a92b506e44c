import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type ClientRequestArgs, type IncomingMessage, request, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createWebServer, stopWebServer } from './web/server.ts'

const configText = JSON.stringify({
  apiBaseUrl: 'https://api.example',
  rpcUrl: 'http://localhost:8545/rpc',
  chainId: 1,
  trust: { witnessUrls: ['https://w1.example', 'http://localhost:8095/witness'] },
})

let folder: string
let server: Server
let port: number

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-web-'))
  await mkdir(join(folder, 'dist/assets'), { recursive: true })
  await writeFile(join(folder, 'secret.txt'), 'secret')
  await writeFile(join(folder, 'dist/index.html'), '<html>page</html>')
  await writeFile(join(folder, 'dist/config.json'), 'from the build')
  await writeFile(join(folder, 'dist/assets/app-1.js'), 'code')
  await writeFile(join(folder, 'dist/verify.html'), '<html>verifier</html>')
  await writeFile(join(folder, 'dist/countersign-verify.mjs'), 'program')
  server = createWebServer({ folder: join(folder, 'dist'), configText })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})

afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true })
})

/** Sends the path unchanged, which `fetch` would normalize. */
async function send(path: string, options: ClientRequestArgs = {}) {
  const call = request({ host: '127.0.0.1', port, path, ...options })
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    call.once('response', resolve).once('error', reject).end()
  })
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

describe('the web server', () => {
  test.each([
    ['/', '<html>page</html>', 'no-cache'],
    ['/proof/abc', '<html>page</html>', 'no-cache'],
    ['/assets/app-1.js', 'code', 'public, max-age=31536000, immutable'],
    ['/config.json?x', configText, 'no-cache'],
  ])('GET %s', async (path, body, caching) => {
    const answer = await send(path)
    expect(answer).toMatchObject({ status: 200, body })
    expect(answer.headers['cache-control']).toBe(caching)
    const { etag = '' } = answer.headers
    expect(await send(path, { headers: { 'if-none-match': etag } })).toMatchObject({ status: 304, body: '' })
  })

  test.each(['/verify.html', '/countersign-verify.mjs'])('a browser saves %s instead of opening it', async (path) => {
    expect((await send(path)).headers['content-disposition']).toBe('attachment')
    expect((await send('/')).headers['content-disposition']).toBeUndefined()
  })

  test('other pages may read the configuration, and only that', async () => {
    expect((await send('/config.json')).headers['access-control-allow-origin']).toBe('*')
    expect((await send('/')).headers['access-control-allow-origin']).toBeUndefined()
  })

  test('returns 404 for a missing script, without the page', async () => {
    expect(await send('/assets/app-0.js')).toMatchObject({ status: 404, body: '' })
  })

  test.each(['/../secret.txt', '/%2e%2e/secret.txt', '/..%2fsecret.txt', '/assets/../../secret.txt'])(
    '%s reaches no file outside',
    async (path) => {
      expect((await send(path)).body).not.toContain('secret')
    },
  )

  test('rejects an invalid path and other methods than reads', async () => {
    expect((await send('/%ff')).status).toBe(400)
    expect((await send('/', { method: 'POST' })).status).toBe(405)
    expect(await send('/', { method: 'HEAD' })).toMatchObject({ status: 200, body: '' })
    expect(await send('/health')).toMatchObject({ status: 200, body: 'ok\n' })
  })

  test("the policy allows https and the configuration's addresses", async () => {
    const { headers } = await send('/')
    const policy = String(headers['content-security-policy'])
    expect(policy).toContain("connect-src 'self' https: http://localhost:8545 http://localhost:8095;")
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain('unsafe')
    expect(headers['x-content-type-options']).toBe('nosniff')
  })

  test('compresses if the client accepts it', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/assets/app-1.js`, { headers: { 'accept-encoding': 'gzip' } })
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(await answer.text()).toBe('code')
    expect(() => gunzipSync('code')).toThrow()
  })

  test.each(['', '{', '[]', 'null'])('rejects the configuration %j', (broken) => {
    expect(() => createWebServer({ folder: join(folder, 'dist'), configText: broken })).toThrow(/the configuration is/)
  })

  test('does not start without a page', () => {
    expect(() => createWebServer({ folder: join(folder, 'dist/assets'), configText })).toThrow(/npm run build:web/)
  })
})

describe('connections', () => {
  async function listen() {
    const server = createWebServer({ folder: join(folder, 'dist'), configText }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { server, port: (server.address() as AddressInfo).port }
  }

  test('stay open longer than a proxy keeps them', () => {
    // 60 s in nginx.
    expect(server.keepAliveTimeout).toBeGreaterThan(60_000)
  })

  test('stopping answers a request that was just sent on an idle connection', async () => {
    const { server, port } = await listen()
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk))
    const request = 'GET /health HTTP/1.1\r\nHost: app.example\r\n\r\n'
    socket.write(request)
    await once(socket, 'data')
    answer = ''
    const ended = once(socket, 'close')
    const closed = once(server, 'close')
    // When this returns, the system has the bytes but the server hasn't read them.
    socket.write(request)
    stopWebServer(server)
    await ended
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: close.*ok\n/s)
    await closed
  })

  test('stopping closes a connection in the middle of a request after some seconds', async () => {
    const { server, port } = await listen()
    const socket = connect(port, '127.0.0.1')
    const connected = once(server, 'connection')
    socket.write('GET /health HTTP/1.1\r\n')
    await connected
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    try {
      const closed = once(server, 'close')
      stopWebServer(server)
      vi.advanceTimersByTime(10_000)
      await closed
    } finally {
      vi.useRealTimers()
      socket.destroy()
    }
  })
})
