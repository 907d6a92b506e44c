import { createSign, generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createSelfSignedCertificate } from '@countersign/attestation/certificates'
import { afterEach, describe, expect, test } from 'vitest'
import { createLookup, type PostWebhookDeps, postWebhook } from './postWebhook.ts'

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** A separate authority. */
function createIdentity(commonName: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cert = createSelfSignedCertificate({
    commonName,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    sign: (message) => createSign('sha256').update(message).sign(privateKey),
    validity: { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 60_000) },
  })
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), cert }
}

type Got = Pick<IncomingMessage, 'method' | 'url' | 'headers'> & { body: string }

async function listen(answer: RequestListener, tls?: { key: string; cert: string }) {
  const got: Got[] = []
  const listener: RequestListener = async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { method, url, headers } = request
    got.push({ method, url, headers, body })
    answer(request, response)
  }
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { port: (server.address() as AddressInfo).port, got }
}

const deps = (changes: Partial<PostWebhookDeps> = {}): PostWebhookDeps => ({
  allowsLoopback: true,
  timeoutMs: 5_000,
  lookup: async () => ['127.0.0.1'],
  ...changes,
})
const post = (url: string, changes?: Partial<PostWebhookDeps>) =>
  postWebhook(deps(changes), {
    url: new URL(url),
    headers: { 'webhook-id': 'msg_1' },
    body: Buffer.from('{"a":1}'),
  }).then(
    () => 'delivered',
    (error) => error.code,
  )

test('posts headers and body to the path, under the name of the receiver', async () => {
  const { port, got } = await listen((_, response) => response.writeHead(204).end())
  expect(await post(`http://receiver.example:${port}/hook?a=1`)).toBe('delivered')
  expect(got).toMatchObject([
    {
      method: 'POST',
      url: '/hook?a=1',
      body: '{"a":1}',
      headers: { host: `receiver.example:${port}`, 'webhook-id': 'msg_1', 'content-length': '7' },
    },
  ])
})

describe('a failed delivery', () => {
  test.each([400, 401, 404, 410, 429, 500, 503])('status %s', async (status) => {
    const { port } = await listen((_, response) => response.writeHead(status).end())
    expect(await post(`http://receiver.example:${port}/`)).toBe(`status_${status}`)
  })
  test.each([301, 302, 303, 307, 308])('does not follow a redirect (%s)', async (status) => {
    const inner = await listen((_, response) => response.end())
    const { port } = await listen((_, response) =>
      response.writeHead(status, { location: `http://127.0.0.1:${inner.port}/secrets` }).end(),
    )
    expect(await post(`http://receiver.example:${port}/`)).toBe('redirected')
    expect(inner.got).toEqual([])
  })
  test.each<[string, RequestListener, string]>([
    ['a hang', () => {}, 'timed_out'],
    [
      'a head and then nothing',
      (_, response) => response.writeHead(200, { 'content-length': 10 }).write('five '),
      'timed_out',
    ],
    [
      'half an answer, however good it began',
      ({ socket }, response) =>
        response.writeHead(200, { 'content-length': 10 }).write('five ', () => socket.destroy()),
      'connection_failed',
    ],
    ['a reset', ({ socket }) => socket.resetAndDestroy(), 'connection_failed'],
    ['what is not HTTP', ({ socket }) => void socket.end('hello\r\n\r\n'), 'connection_failed'],
  ])('%s', async (_, answer, code) => {
    const { port } = await listen(answer)
    const changes = code === 'timed_out' ? { timeoutMs: 100 } : {}
    expect(await post(`http://receiver.example:${port}/`, changes)).toBe(code)
  })
  test('connection refused', async () => {
    const { port } = await listen(() => {})
    for (const stop of stops.splice(0)) await stop()
    expect(await post(`http://receiver.example:${port}/`)).toBe('connection_failed')
  })
})

test('uses the status of an endless answer without reading it', async () => {
  const { port } = await listen((_, response) => {
    const write = () => void (!response.destroyed && response.write('x'.repeat(16_384), write))
    response.writeHead(200)
    write()
  })
  expect(await post(`http://receiver.example:${port}/`)).toBe('delivered')
})

describe('a name with several addresses', () => {
  test('is tried at the next address if one refuses the connection', async () => {
    const { port, got } = await listen((_, response) => response.end())
    const lookup = async () => ['127.0.0.2', '127.0.0.3', '127.0.0.1']
    expect(await post(`http://receiver.example:${port}/`, { lookup })).toBe('delivered')
    expect(got).toHaveLength(1)
  })
  test('is tried at the next address with TLS for the name', async () => {
    const { key, cert } = createIdentity('receiver.example')
    const { port, got } = await listen((_, response) => response.end(), { key, cert })
    const lookup = async () => ['127.0.0.2', '127.0.0.1']
    expect(await post(`https://receiver.example:${port}/`, { ca: cert, lookup })).toBe('delivered')
    expect(got).toHaveLength(1)
  })
  test('gets it once if the first address accepts the connection, even if the request fails', async () => {
    const { port, got } = await listen((request) => request.socket.resetAndDestroy())
    const lookup = async () => ['127.0.0.1', '127.0.0.1']
    expect(await post(`http://receiver.example:${port}/`, { lookup })).toBe('connection_failed')
    expect(got).toHaveLength(1)
  })
  test('is tried at no more than four addresses', async () => {
    const { port, got } = await listen((_, response) => response.end())
    const lookup = async () => ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.1']
    expect(await post(`http://receiver.example:${port}/`, { lookup })).toBe('connection_failed')
    expect(got).toEqual([])
  })
})

test('shares one lookup per name among concurrent callers, and does not delay other names', async () => {
  const asked: string[] = []
  const slow = Promise.withResolvers<readonly string[]>()
  const lookup = createLookup((hostname) => {
    asked.push(hostname)
    return hostname === 'slow.example' ? slow.promise : Promise.resolve([])
  })
  for (let index = 0; index < 3; index++) {
    const attempts = Array.from({ length: 5 }, () => post('https://slow.example/', { lookup, timeoutMs: 20 }))
    expect(new Set(await Promise.all(attempts))).toEqual(new Set(['timed_out']))
  }
  expect(await post('https://other.example/', { lookup })).toBe('name_unknown')
  expect(asked).toEqual(['slow.example', 'other.example'])
  slow.reject(new Error('no answer'))
  await expect(lookup('slow.example')).rejects.toThrow('no answer')
  await lookup('slow.example').catch(() => {})
  expect(asked).toEqual(['slow.example', 'other.example', 'slow.example'])
})

describe('sends no request to a private address', () => {
  test.each([
    '10.0.0.1',
    '169.254.169.254',
    '::ffff:127.0.0.1',
    '64:ff9b::7f00:1',
    '0.0.0.0',
    '127.0.0.1',
    '::1',
    'fd00:ec2::254',
  ])('a name that resolves to %s', async (address) => {
    const { port, got } = await listen((_, response) => response.end())
    const lookup = async () => [address]
    expect(await post(`https://receiver.example:${port}/`, { allowsLoopback: false, lookup })).toBe('address_refused')
    expect(await post(`http://receiver.example:${port}/`, { allowsLoopback: false, lookup })).toBe('address_refused')
    expect(got).toEqual([])
  })
  test.each(['10.0.0.1', '169.254.169.254', '0.0.0.0'])('%s, even if loopback is allowed', async (address) => {
    expect(await post('https://receiver.example/', { lookup: async () => [address] })).toBe('address_refused')
  })
  test('an address in the URL', async () => {
    const lookup = () => Promise.reject(new Error('not asked'))
    expect(await post('https://127.0.0.1/', { allowsLoopback: false, lookup })).toBe('address_refused')
    expect(await post('https://[::ffff:7f00:1]/', { lookup })).toBe('address_refused')
  })
  test('one private address among public ones', async () => {
    const lookup = async () => ['1.1.1.1', '10.0.0.1']
    expect(await post('https://receiver.example/', { allowsLoopback: false, lookup })).toBe('address_refused')
  })
  test('plain http to a public address', async () => {
    expect(await post('http://receiver.example/', { lookup: async () => ['1.1.1.1'] })).toBe('address_refused')
  })
  test('a name without an address', async () => {
    expect(await post('https://receiver.example/', { lookup: async () => [] })).toBe('name_unknown')
    expect(await post('https://receiver.example/', { lookup: () => Promise.reject(new Error('ENOTFOUND')) })).toBe(
      'name_unknown',
    )
  })
  test('a lookup that never ends', async () => {
    expect(await post('https://receiver.example/', { timeoutMs: 100, lookup: () => new Promise(() => {}) })).toBe(
      'timed_out',
    )
  })
})

describe('resolves the name once, connects to the address and verifies TLS for the name', () => {
  test.each([
    ['the name of the receiver', 'receiver.example', 'delivered'],
    ['another name', 'other.example', 'connection_failed'],
  ])('a certificate for %s', async (_name, certified, expected) => {
    const { key, cert } = createIdentity(certified)
    const { port, got } = await listen((_, response) => response.end(), { key, cert })
    let asked = 0
    const lookup = async () => {
      asked += 1
      return ['127.0.0.1']
    }
    expect(await post(`https://receiver.example:${port}/`, { ca: cert, lookup })).toBe(expected)
    expect([got.length, asked]).toEqual([expected === 'delivered' ? 1 : 0, 1])
  })
  test('a certificate from an unknown authority', async () => {
    const { key, cert } = createIdentity('receiver.example')
    const { port, got } = await listen((_, response) => response.end(), { key, cert })
    expect(await post(`https://receiver.example:${port}/`)).toBe('connection_failed')
    expect(got).toEqual([])
  })
})
