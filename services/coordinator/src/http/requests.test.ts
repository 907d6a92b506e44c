import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { APP, createTestApp, signBody, toDigest, txMetadata } from '../../test/http/testApp.ts'
import { completeProof } from '../../test/proofs/completeProof.ts'
import type { AppConfig, AppDeps } from '../app.ts'
import { CoordinatorError } from '../errors.ts'
import { toProofView } from '../proofs/proofView.ts'
import type { SignResult } from '../sign/job.ts'
import type { Proof } from '../store/proofs.ts'
import { createHttpServer } from './createHttpServer.ts'

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

const final: Proof = { ...completeProof, receipt: Buffer.from('{"text":"é"}'), isFinal: true }

type Changes = { config?: Partial<AppConfig>; deps?: Partial<AppDeps> }

/** A user with a wallet, and the app behind a server. */
async function listen(changes: Changes = {}) {
  const app = createTestApp(changes)
  app.store.rows.proofs.set(final.slug, final)
  const user = app.browser()
  await user.signIn()
  await user.post('/wallet/provision')
  const cookie = [...user.jar].map((pair) => pair.join('=')).join('; ')
  const before = app.log.lines.length
  const server = createHttpServer(app.handleRequest).listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => {
    server.closeAllConnections()
    server.close()
  })

  /** Everything that arrives until the server closes the connection. */
  async function send(bytes: string, { isCut = false } = {}): Promise<string> {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    let text = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => (text += chunk.toString('utf8')))
    if (isCut) socket.end(bytes)
    else socket.write(bytes)
    // Not `once` of node:events, which rejects if a reset arrives first.
    await new Promise((resolve) => socket.once('close', resolve))
    return text
  }

  return { ...app, cookie, send, lines: () => app.log.lines.slice(before) }
}

type Asked = { cookie: string; headers?: readonly string[]; body?: string; line?: string }

const HOST = 'Host: api.example'
const ORIGIN = `Origin: ${APP}`
const JSON_TYPE = 'Content-Type: application/json'

function toBytes({
  cookie,
  headers,
  body = JSON.stringify(signBody),
  line = 'POST /sign/digest HTTP/1.1',
}: Asked): string {
  const all = headers ?? [HOST, ORIGIN, JSON_TYPE, `Cookie: ${cookie}`]
  const length = all.some((header) => /^(content-length|transfer-encoding)/i.test(header))
    ? []
    : [`Content-Length: ${Buffer.byteLength(body)}`]
  return [line, ...all, ...length, 'Connection: close', '', body].join('\r\n')
}

const withMore =
  (...headers: string[]) =>
  ({ cookie }: { cookie: string }) =>
    toBytes({ cookie, headers: [HOST, ORIGIN, JSON_TYPE, `Cookie: ${cookie}`, ...headers] })
const only =
  (...headers: string[]) =>
  ({ cookie }: { cookie: string }) =>
    toBytes({ cookie, headers: headers.map((header) => header.replace('COOKIE', cookie)) })
const body =
  (text: string) =>
  ({ cookie }: { cookie: string }) =>
    toBytes({ cookie, body: text })
const COOKIE = 'Cookie: COOKIE'
const foreign = `__Host-countersign-session=${'00'.repeat(32)}`

type Case = [name: string, toBytes: (user: { cookie: string }) => string, status: number, changes?: Changes]

const signings: Case[] = [
  ['what is asked for every day', (user) => toBytes(user), 200],
  ['an id of the caller', withMore('X-Request-Id: mine-1'), 200],
  ['an id that could be taken for something else', withMore('X-Request-Id: a b'), 200],
  [
    'an address of a proxy',
    withMore('X-Forwarded-For: 198.51.100.1'),
    200,
    { config: { trustedProxies: ['127.0.0.1'] } },
  ],
  ['a charset', only(HOST, ORIGIN, `${JSON_TYPE}; charset=utf-8`, COOKIE), 200],
  ['names in other cases', only('hOST: api.example', `ORIGIN: ${APP}`, 'content-TYPE: application/json', COOKIE), 200],
  ['two cookies in two lines', only(HOST, ORIGIN, JSON_TYPE, 'Cookie: a=b', COOKIE), 200],
  ['a limit', (user) => toBytes(user), 200, { config: { rateLimits: limits(5) } }],
  ['no session', only(HOST, ORIGIN, JSON_TYPE), 401],
  ['a foreign session', only(HOST, ORIGIN, JSON_TYPE, `Cookie: ${foreign}`), 401],
  [
    'a foreign session, counted',
    only(HOST, ORIGIN, JSON_TYPE, `Cookie: ${foreign}`),
    401,
    { config: { rateLimits: limits(5) } },
  ],
  ['no session and no JSON', ({ cookie }) => toBytes({ cookie, headers: [HOST, ORIGIN, JSON_TYPE], body: '{' }), 401],
  [
    'two sessions',
    ({ cookie }) => toBytes({ cookie, headers: [HOST, ORIGIN, JSON_TYPE, `Cookie: ${cookie}; ${foreign}`] }),
    401,
  ],
  ['a foreign origin', only(HOST, 'Origin: https://evil.example', JSON_TYPE, COOKIE), 403],
  ['two origins', withMore(`Origin: ${APP}`), 403],
  ['no origin', only(HOST, JSON_TYPE, COOKIE), 403],
  ['two Hosts', withMore('hOsT: evil.example'), 400],
  ['no body', body(''), 400],
  ['no JSON', body('{'), 400],
  ['no UTF-8 of it', body('"\u00ff"'), 400],
  ['a member twice', body('{"digest":"0x","digest":"0x"}'), 400],
  ['a list', body('[]'), 400],
  ['too many members', body(JSON.stringify({ digest: new Array(1001).fill(0) })), 400],
  ['a member too many', body(JSON.stringify({ ...signBody, more: 1 })), 400],
  ['no digest', body(JSON.stringify({ ...signBody, digest: '0x12' })), 400],
  ['no metadata', body(JSON.stringify({ ...signBody, txMetadata: {} })), 400],
  ['the digest of something else', body(JSON.stringify({ ...signBody, digest: `0x${'11'.repeat(32)}` })), 422],
  ['another kind of transaction', body(JSON.stringify({ ...signBody, txMetadata: { ...txMetadata, to: null } })), 422],
  ['another chain', (user) => toBytes(user), 422, { config: { allowedChainIds: [1] } }],
  ['no vault', body(JSON.stringify({ ...signBody, wallet: `0x${'11'.repeat(20)}` })), 404],
  ['approvals of no vault', body(JSON.stringify({ ...signBody, approvals: [] })), 400],
  ['no type of content', only(HOST, ORIGIN, COOKIE), 415],
  ['another type of content', only(HOST, ORIGIN, 'Content-Type: text/plain', COOKIE), 415],
  ['a failure of the enclave', (user) => toBytes(user), 502, { deps: { sign: refuse('signature_invalid') } }],
  [
    'a failure of our own',
    (user) => toBytes(user),
    500,
    { deps: { sign: () => Promise.reject(new RangeError('secret')) } },
  ],
]

const { slug } = final
const get =
  (line: string, ...headers: string[]) =>
  () =>
    [`${line} HTTP/1.1`, HOST, ...headers, 'Connection: close', '', ''].join('\r\n')
const proof = `GET /proof/${slug}`
const etag = toProofView(final, undefined).version

const proofs: Case[] = [
  ['a proof', get(proof), 200],
  ['a proof for one of our pages', get(proof, ORIGIN), 200],
  ['a proof for any other page', get(proof, 'Origin: https://other.example'), 200],
  ['a proof in a part of any other page', get(proof, 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors'), 200],
  ['the page of a proof', get(proof, 'Accept: text/html,application/xhtml+xml,*/*;q=0.8'), 302],
  ['a proof for a client that accepts anything', get(proof, 'Accept: */*'), 200],
  ['a proof, counted', get(proof), 200, { config: { rateLimits: { ...limits(1), proof: { count: 5, seconds: 60 } } } }],
  ['a proof that the caller has', get(proof, `If-None-Match: "${etag}"`), 304],
  ['the same, compared weakly', get(proof, `If-None-Match: W/"${etag}"`), 304],
  ['the same in two lines', get(proof, 'If-None-Match: "x"', `If-None-Match: "${etag}"`), 304],
  ['any that the caller has', get(proof, 'If-None-Match: *'), 304],
  ['any among others', get(proof, 'If-None-Match: "x", *'), 200],
  ['tags without quotes', get(proof, `If-None-Match: ${etag}`), 200],
  ['no such proof', get('GET /proof/AAAAAAAAAAAAAAAAAAAAAQ', 'If-None-Match: *'), 404],
  ['bits that no slug has', get('GET /proof/AAAAAAAAAAAAAAAAAAAAAB'), 404],
  ['a proof from two Hosts', get(proof, 'hOsT: evil.example'), 400],
]

const unusual: Case[] = [
  ['the head of a proof', get(`HEAD /proof/${slug}`), 200],
  ['a proof with a query', get(`${proof}?a=b`), 200],
  ['a proof asked for with a body', get(proof, 'Content-Length: 0'), 200],
  ['a proof in another spelling', get(`GET /proof/%41${slug.slice(1)}`), 200],
  ['the page of an invalid slug', get('GET /proof/x', 'Accept: text/html'), 404],
  ['what is no slug', get('GET /proof/x'), 404],
  ['the events of a proof', get(`${proof}/events`, `Last-Event-Id: ${etag}`), 204],
  ['no method of a proof', get(`POST /proof/${slug}`, 'Content-Length: 0', ORIGIN), 405],

  ['a query', ({ cookie }) => toBytes({ cookie, line: 'POST /sign/digest?a=b HTTP/1.1' }), 200],
  ['an absolute form', ({ cookie }) => toBytes({ cookie, line: 'POST http://api.example/sign/digest HTTP/1.1' }), 200],
  ['a path in another spelling', ({ cookie }) => toBytes({ cookie, line: 'POST /sign/%64igest HTTP/1.1' }), 200],
  ['another method', ({ cookie }) => toBytes({ cookie, line: 'PUT /sign/digest HTTP/1.1' }), 405],
  [
    'a preflight',
    ({ cookie }) =>
      toBytes({
        cookie,
        line: 'OPTIONS /sign/digest HTTP/1.1',
        headers: [HOST, ORIGIN, 'Access-Control-Request-Method: POST'],
        body: '',
      }),
    204,
  ],
  ['a Host with a user', only('Host: a@b', ORIGIN, JSON_TYPE, COOKIE), 400],
  ['a Host in upper case', only('Host: API.example', ORIGIN, JSON_TYPE, COOKIE), 200],
  ['two types of content', withMore('Content-Type: text/plain'), 415],
  ['a body in chunks', ({ cookie }) => toChunked(cookie, JSON.stringify(signBody)), 200],
  ['too long a body', withMore('Content-Length: 131073'), 413],
]

function limits(count: number): AppConfig['rateLimits'] {
  return { sign: { count, seconds: 60 }, provision: 'off', auth: 'off', proof: 'off' }
}

function refuse(code: ConstructorParameters<typeof CoordinatorError>[0]) {
  return () => Promise.reject(new CoordinatorError(code, 'refused'))
}

function toChunked(cookie: string, text: string): string {
  const headers = [HOST, ORIGIN, JSON_TYPE, `Cookie: ${cookie}`, 'Transfer-Encoding: chunked']
  return toBytes({ cookie, headers, body: `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n` })
}

test.each([...signings, ...proofs, ...unusual])('%s', async (_, toRequest, status, changes) => {
  const { send, cookie, lines } = await listen(changes)
  const answer = await send(toRequest({ cookie }))
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(answer).not.toContain('secret')
  expect(lines().filter(({ msg }) => msg === 'Answered')).toMatchObject([{ status }])
})

test('a proof contains the bytes of its receipt', async () => {
  const { send } = await listen()
  expect(await send(get(proof)())).toContain('"receipt":{"text":"é"},')
})

test('rejects requests above the limit with Retry-After', async () => {
  const { send, cookie } = await listen({ config: { rateLimits: limits(1) } })
  expect(await send(toBytes({ cookie }))).toMatch(/^HTTP\/1\.1 200 /)
  const answer = await send(toBytes({ cookie }))
  expect(answer).toMatch(/^HTTP\/1\.1 429 /)
  expect(answer).toContain('retry-after: 60')
  expect(answer).toContain('"code":"rate_limited"')
})

test('answers pipelined requests in order', async () => {
  const { send, cookie, signings } = await listen()
  const ask = (nonce: number) => {
    const metadata = { ...txMetadata, nonce }
    const text = JSON.stringify({ digest: toDigest(metadata), txMetadata: metadata })
    return toBytes({
      cookie,
      body: text,
      headers: [HOST, ORIGIN, JSON_TYPE, `Cookie: ${cookie}`, `X-Request-Id: n${nonce}`],
    })
  }
  const keep = (text: string) => text.replace('Connection: close', 'Connection: keep-alive')
  const answer = await send(keep(ask(1)) + keep(ask(2)) + ask(3))
  expect([...answer.matchAll(/x-request-id: (\S+)/g)].map(([, id]) => id)).toEqual(['n1', 'n2', 'n3'])
  expect(signings).toHaveLength(3)
})

test('a caller that disconnects during the body gets nothing signed, and the request is logged', async () => {
  const { send, cookie, signings, lines } = await listen()
  await send(toBytes({ cookie }).slice(0, -10), { isCut: true })
  await expect.poll(lines).toMatchObject([{ msg: 'Answered', status: 400, code: 'invalid_request' }])
  expect(signings).toEqual([])
})

test('stop waits for a running request, closes its connection and rejects later ones', async () => {
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>()
  const { promise: signed, resolve: release } = Promise.withResolvers<SignResult>()
  const sign: AppDeps['sign'] = () => {
    onAsked()
    return signed
  }
  const { send, cookie, stop } = await listen({ deps: { sign } })
  const kept = toBytes({ cookie }).replace('Connection: close', 'Connection: keep-alive')
  const answering = send(kept)
  await asked
  const stopping = stop()
  release({ signature: `0x${'1b'.repeat(65)}`, slug: 'abcdefghijklmnopqrstuQ' })
  const answer = await answering
  await stopping
  expect(answer).toMatch(/^HTTP\/1\.1 200 /)
  expect(answer).toContain('connection: close')
  expect(await send(kept)).toMatch(/^HTTP\/1\.1 503 /)
})
