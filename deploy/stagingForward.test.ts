import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, request as requestHttp, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createPasswordGuard, createTrustedProxies } from '@countersign/service'
import { startOidcProvider } from '@countersign/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Context } from '../services/coordinator/src/doctor/check.ts'
import { createSignInChecks } from '../services/coordinator/src/doctor/signIn.ts'
import { createFront } from './staging/front.ts'
import { createPagesServer, createPodServer } from './staging/worldServers.ts'

const guard = createPasswordGuard('a password of staging')
const cookie = `countersign-staging=${guard.cookie}`
const asked: { name: string; url: string | undefined; headers: IncomingHttpHeaders }[] = []
const stops: (() => void)[] = []

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  stops.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Answers as its name; ends in the middle of `/cut`. */
const listenAs = (name: string) =>
  listen(
    createServer(({ url, headers, socket }, response) => {
      asked.push({ name, url, headers })
      if (url !== '/cut') return void response.writeHead(200, { 'x-own': 'yes' }).end(name)
      response.writeHead(200, { 'content-length': '1000' })
      response.write('half', () => socket.destroy())
    }),
  )

const listenAsFront = (upstreams: Record<'api' | 'chain' | 'ipfs', string[]>, trusted: readonly string[] = []) => {
  const { intercept } = createFront({ guard, upstreams, isTrusted: createTrustedProxies(trusted) })
  return listen(createServer((request, response) => void (intercept?.(request, response) || response.end('page'))))
}

/** As a program does that writes its own request line. */
function ask(port: number, path: string, headers: Record<string, string> = { cookie }) {
  return new Promise<{ status: number | undefined; silicon: unknown; text: string; error: string | undefined }>(
    (resolve, reject) => {
      const call = requestHttp({ host: '127.0.0.1', port, path, headers }, (answer) => {
        let text = ''
        const settle = (error?: Error) =>
          resolve({
            status: answer.statusCode,
            silicon: answer.headers['countersign-silicon'],
            text,
            error: error?.message,
          })
        answer
          .on('data', (chunk) => (text += chunk))
          .on('end', () => settle())
          .on('error', settle)
      })
      call.on('error', reject).end()
    },
  )
}

let ports: { victim: number; front: number; proxied: number; pages: number; pods: number }

beforeAll(async () => {
  const [api, chain, ipfs, issuer, victim] = await Promise.all(
    ['api', 'chain', 'ipfs', 'issuer', 'victim'].map(listenAs),
  )
  const toUrl = (port: number | undefined) => `http://127.0.0.1:${port}`
  const upstreams = { api: [toUrl(api)], chain: [toUrl(chain)], ipfs: [toUrl(ipfs)] }
  const [front, proxied, pages, pods] = await Promise.all([
    listenAsFront(upstreams),
    listenAsFront(upstreams, ['127.0.0.1']),
    listen(createPagesServer({ guard, target: toUrl(issuer) })),
    listen(createPodServer({ target: toUrl(chain) })),
  ])
  ports = { victim: victim as number, front, proxied, pages, pods }
})
beforeEach(() => void asked.splice(0))
afterAll(() => {
  for (const stop of stops) stop()
})

describe('no caller chooses the host that is asked', () => {
  test.each([
    ['front', '/rpc//HOST/api/v0/id'],
    ['front', '/rpc/\\HOST/api/v0/id'],
    ['front', '/rpc//user@HOST/'],
    ['front', 'http://HOST/rpc'],
    ['front', 'http://HOST/auth/me'],
    ['front', '//HOST/ipfs/bafy'],
    ['pages', '//HOST/'],
    ['pages', '/\\HOST/'],
    ['pages', 'http://HOST/'],
    ['pods', '//HOST/'],
    ['pods', '/\\HOST/'],
    ['pods', 'http://HOST/'],
    ['pods', '*'],
  ] as const)('%s, %s', async (name, path) => {
    const { text } = await ask(ports[name], path.replace('HOST', `127.0.0.1:${ports.victim}`))
    // What is no path gets nothing, or the front's own page.
    expect([['', 'page'].includes(text), asked]).toEqual([true, []])
  })

  test('a path with a host further on is a path', async () => {
    await ask(ports.pods, `/a//127.0.0.1:${ports.victim}/`)
    expect(asked).toMatchObject([{ name: 'chain', url: `/a//127.0.0.1:${ports.victim}/` }])
  })
})

describe('who gets the visitor’s cookies and password', () => {
  const headers = { cookie: `${cookie}; session=x`, authorization: 'Basic eDp5' }

  test.each([
    ['front', '/rpc', 'chain'],
    ['front', '/ipfs/bafy', 'ipfs'],
    ['pods', '/', 'chain'],
  ] as const)('%s, %s: not the %s', async (name, path, expected) => {
    await ask(ports[name], path, headers)
    expect(asked.map((one) => [one.name, one.headers.cookie, one.headers.authorization])).toEqual([
      [expected, undefined, undefined],
    ])
  })

  test.each([
    ['front', '/auth/me', 'api'],
    ['pages', '/', 'issuer'],
  ] as const)('%s, %s: the %s', async (name, path, expected) => {
    await ask(ports[name], path, headers)
    expect(asked).toMatchObject([{ name: expected, headers }])
  })
})

describe('every answer that was handed on', () => {
  test.each([
    ['front', '/rpc'],
    ['front', '/ipfs/bafy'],
    ['front', '/auth/me'],
    ['pages', '/'],
    ['pods', '/'],
  ] as const)('%s, %s: is marked', async (name, path) => {
    expect(await ask(ports[name], path)).toMatchObject({ status: 200, silicon: 'MOCK', error: undefined })
  })

  test('so are refusals', async () => {
    expect(await ask(ports.pods, '*')).toMatchObject({ status: 400, silicon: 'MOCK' })
    expect(await ask(ports.pages, '/', {})).toMatchObject({ status: 401, silicon: 'MOCK' })
    const away = await listen(createPodServer({ target: 'http://127.0.0.1:1' }))
    expect(await ask(away, '/')).toMatchObject({ status: 502, silicon: 'MOCK' })
  })

  test('ends in the middle where its own did, and nobody waits for the rest', async () => {
    expect(await ask(ports.pods, '/cut')).toMatchObject({ status: 200, text: 'half', error: 'aborted' })
  })
})

describe('the address of the caller', () => {
  test.each([
    ['is that of the connection, whatever the caller says', 'front', '203.0.113.9', '127.0.0.1'],
    ['is added to what a listed proxy says', 'proxied', '203.0.113.9', '203.0.113.9, 127.0.0.1'],
    ['stands alone where a listed proxy says nothing', 'proxied', undefined, '127.0.0.1'],
  ] as const)('%s', async (_, name, given, expected) => {
    await ask(ports[name], '/auth/me', given === undefined ? {} : { 'x-forwarded-for': given })
    expect(asked.map(({ headers }) => headers['x-forwarded-for'])).toEqual([expected])
  })
})

test.each([
  ['staging', ['ok']],
  ['production', ['fault']],
])('the doctor of a %s, asked about a provider whose pages are behind the password: %j', async (mode, expected) => {
  const pagesUrl = `http://localhost:${ports.pages}`
  const issuer = await startOidcProvider({ redirectUris: ['http://localhost:8500/auth/google/callback'], pagesUrl })
  try {
    const provider = {
      id: 'google',
      issuer: issuer.issuer,
      clientId: 'countersign',
      clientSecret: 'x',
      name: '',
      icon: '',
    }
    const coordinator = { mode, app: { publicUrl: 'http://localhost:8500' }, providers: [provider] }
    const context = { subject: { coordinator }, clock: Date.now, fetch } as unknown as Context
    const found = await createSignInChecks(context)[0]?.run({ signal: AbortSignal.timeout(10_000) })
    expect([found].flat().map((one) => one && 'state' in one && one.state)).toEqual(expected)
  } finally {
    await issuer.stop()
  }
})
