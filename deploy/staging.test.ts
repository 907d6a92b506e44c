import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { createPasswordGuard } from '@countersign/service'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { startBrowser } from '../e2e/startBrowser.ts'
import { findChromium } from '../scripts/findChromium.ts'
import { readConfig as readCoordinatorConfig } from '../services/coordinator/src/config.ts'
import { exportRoute, pages, routes, tileRoute } from '../services/coordinator/src/http/routes.ts'
import { readWorkerConfig } from '../services/coordinator/src/pipeline/config.ts'
import { readConfig as readEnclaveConfig } from '../services/enclave/src/config.ts'
import { images } from './measure/images.ts'
import { type Compose, checkCompose, interpolate, toContainers } from './rules/checkCompose.ts'
import { imageOf, programOf } from './rules/containers.ts'
import { createFiles, parseUrl } from './staging/createFiles.ts'
import { createFront } from './staging/front.ts'
import { toRoute } from './staging/toRoute.ts'
import { findSchemaFaults } from './test/composeSchema.ts'
import { composeContext, compose as production, read } from './test/manifests.ts'
import { createWebServer } from './web/server.ts'

const files = createFiles({ folder: '/run/staging', url: 'http://localhost:8500', user: '1000:1000' })
const password = files['staging-password']?.trim() ?? ''
const staging = interpolate(
  parse(read('deploy/compose.staging.yaml'), { merge: true }),
  parseEnv(files['.env'] ?? ''),
) as Compose
const containers = toContainers(staging)

describe('the Compose file of a staging', () => {
  test('follows the schema and keeps our own rules', () => {
    expect(findSchemaFaults(staging)).toEqual([])
    expect(checkCompose(staging, composeContext)).toEqual([])
  })

  test('has images with simulated silicon alone, and production has none of them', () => {
    expect(containers.flatMap((one) => imageOf(one) ?? []).toSorted()).toEqual([
      'coordinator-staging',
      'coordinator-staging',
      'coordinator-staging',
      'enclave-staging',
      'web-staging',
    ])
    for (const one of toContainers(production)) expect(imageOf(one) ?? '').not.toContain('staging')
    expect(JSON.stringify(production)).not.toMatch(/MOCK|STAGING/)
  })

  test('every service starts with what is prepared', () => {
    const readFile = (path: string) => files[path.replace('/run/secrets/', '')] ?? ''
    for (const { env, where, ...rest } of containers) {
      const program = programOf({ env, where, ...rest })
      const given = { ...env, NODE_ENV: 'staging' }
      const deps = { readFile, version: '0.0.0' }
      if (program === 'coordinator')
        expect(readCoordinatorConfig(given, deps)).toMatchObject({ mode: 'staging', isMock: true })
      if (program === 'enclave') expect(readEnclaveConfig(given, deps).chainIds).toContain(31337)
      if (program === 'worker')
        expect(readWorkerConfig(given, deps)).toMatchObject({ config: { chain: { chainId: 31337 } } })
      if (program === 'coordinator')
        expect(() => readCoordinatorConfig({ ...given, NODE_ENV: 'production' }, deps)).toThrow()
    }
  })

  test('is open on loopback of its host alone', () => {
    const ports = Object.values(staging.services).flatMap((service) => (service as { ports?: string[] }).ports ?? [])
    expect(ports).toEqual(['127.0.0.1:8500:8500', '127.0.0.1:8461:8461'])
  })

  test('every image with the simulator says so in its name', () => {
    for (const [name, { leftOut, entries }] of Object.entries(images)) {
      const isService = entries.some((entry) => /services\/(enclave|coordinator)/.test(entry))
      const hasSimulator = isService && !(leftOut as readonly string[]).includes('@countersign/attestation/simulator')
      expect([name, hasSimulator]).toEqual([name, isService && name.endsWith('-staging')])
    }
  })
})

describe('what is prepared', () => {
  test('is new each time, and long enough', () => {
    const again = createFiles({ folder: '/run/staging', url: 'http://localhost:8500', user: '1000:1000' })
    for (const name of [
      'staging-password',
      'google-client-secret',
      'publisher-key',
      'root-secret',
      'postgres-password',
    ]) {
      expect(again[name], name).not.toBe(files[name])
    }
    expect(password.length).toBeGreaterThanOrEqual(16)
  })

  test('is followed by the commands that come next on the page, in their order', () => {
    const folder = mkdtempSync(join(tmpdir(), 'staging-'))
    try {
      const args = ['-C', 'source', join(import.meta.dirname, 'staging/prepare.ts'), folder]
      const { stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
      const said = [...stdout.matchAll(/^(?:Next|Then): (.+)$/gm)].map(([, command]) =>
        command?.replace(folder, 'staging'),
      )
      const steps = [...read('docs/production.md').matchAll(/^\| [34] +\| `([^`]+)`/gm)].map(([, command]) => command)
      expect(said).toHaveLength(2)
      expect(said).toEqual(steps)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test.each([
    ['http://localhost:8500', 'http://localhost:8500'],
    ['http://localhost:8500/', 'http://localhost:8500'],
    ['https://staging.example', 'https://staging.example'],
    ['http://staging.example', undefined],
    ['http://127.0.0.1:8500', undefined],
    ['https://staging.example/path', undefined],
    ['https://user:x@staging.example', undefined],
    ['ftp://localhost', undefined],
    ['localhost', undefined],
  ])('--url %s is %s', (text, expected) => {
    expect(parseUrl(text)).toBe(expected)
  })
})

test.each([
  ['/', 'text/html', 'web'],
  ['/assets/index.js', '*/*', 'web'],
  ['/config.json', '*/*', 'web'],
  ['/proof/abc', 'text/html,*/*', 'web'],
  ['/proof/abc', 'application/json', 'api'],
  ['/proof/abc/events', 'text/event-stream', 'api'],
  ['/sign', 'text/html', 'web'],
  ['/sign/digest', undefined, 'api'],
  ['/vaults', 'text/html', 'web'],
  ['/vaults', 'application/json', 'api'],
  ['/auth/google', 'text/html', 'api'],
  ['/auth', '*/*', 'api'],
  ['/wallet/me', '*/*', 'api'],
  ['/staging', 'text/html', 'api'],
  ['/docs', 'text/html', 'api'],
  ['/health/ready', '*/*', 'api'],
  ['/rpc', '*/*', 'chain'],
  ['/rpc/faucet', '*/*', 'chain'],
  ['/rpcs', '*/*', 'web'],
  ['/ipfs/bafy', '*/*', 'ipfs'],
  ['/authority', 'text/html', 'web'],
])('the front leads %s (%s) to %s', (path, accept, expected) => {
  expect(toRoute({ path, accept })).toBe(expected)
})

test.each([...Object.values(routes), exportRoute, tileRoute, pages.openapi, pages.docs, pages.docsErrors])(
  'the front leads every call of the API to it: $path',
  ({ path }) => {
    // Receipts come from the node itself, and whether the front is alive is for the front to say.
    const own: Record<string, string> = { '/ipfs/{cid}': 'ipfs', '/health': 'web' }
    expect(toRoute({ path, accept: '*/*' })).toBe(own[path] ?? 'api')
  },
)

describe('the front', () => {
  const guard = createPasswordGuard(password)
  const cookie = `countersign-staging=${guard.cookie}`
  const isTrusted = () => false
  const asked: { name: string; url: string | undefined; forwardedFor: string | undefined; body: string }[] = []
  let folder: string
  let url: string
  const stops: (() => void)[] = []

  async function start(name: string): Promise<string> {
    const server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      asked.push({ name, url: request.url, forwardedFor: request.headers['x-forwarded-for'] as string, body })
      response.writeHead(200, { 'content-type': 'text/plain', 'x-own': 'yes' }).end(name)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    stops.push(() => void server.close())
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'countersign-front-'))
    writeFileSync(join(folder, 'index.html'), read('apps/web/index.html'))
    const [api, chain, ipfs] = await Promise.all([start('api'), start('chain'), start('ipfs')])
    const upstreams = { api: ['http://127.0.0.1:1', api], chain: [chain], ipfs: [ipfs] }
    const configText = files['web-config.json'] ?? ''
    const server = createWebServer({ folder, configText, ...createFront({ guard, upstreams, isTrusted }) }).listen(
      0,
      '127.0.0.1',
    )
    await once(server, 'listening')
    stops.push(() => {
      server.closeAllConnections()
      server.close()
    })
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })

  afterAll(() => {
    for (const stop of stops) stop()
    rmSync(folder, { recursive: true })
  })

  const ask = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(`${url}${path}`, { redirect: 'manual', headers, ...init })

  test.each(['/', '/config.json', '/assets/x.js', '/rpc', '/ipfs/bafy', '/verify'])(
    '%s needs the password',
    async (path) => {
      const before = asked.length
      const response = await ask(path)
      expect([response.status, response.headers.get('countersign-silicon'), asked.length]).toEqual([
        401,
        'MOCK',
        before,
      ])
      const page = await ask(path, { accept: 'text/html' })
      expect([page.status, page.headers.get('location')]).toEqual([
        303,
        `/staging?return_to=${encodeURIComponent(path)}`,
      ])
    },
  )

  test('a wrong cookie, or the password by Basic, opens nothing here: passwords are tried where they are counted', async () => {
    expect((await ask('/', { cookie: 'countersign-staging=00' })).status).toBe(401)
    const authorization = `Basic ${Buffer.from(`x:${password}`).toString('base64')}`
    expect((await ask('/', { authorization })).status).toBe(401)
  })

  test('hands the API everything, whose own gate judges it, and says where it came from', async () => {
    const body = 'password=x'
    const response = await ask('/staging?a=b', { 'x-forwarded-for': '203.0.113.9' }, { method: 'POST', body })
    expect([response.status, await response.text(), response.headers.get('x-own')]).toEqual([200, 'api', 'yes'])
    expect(response.headers.get('content-security-policy')).toBeNull()
    expect(asked.at(-1)).toEqual({ name: 'api', url: '/staging?a=b', forwardedFor: '127.0.0.1', body })
  })

  test('leads to the chain and to receipts with the cookie', async () => {
    await ask('/rpc', { cookie }, { method: 'POST', body: '{}' })
    expect(asked.at(-1)).toMatchObject({ name: 'chain', url: '/', body: '{}' })
    await ask('/rpc/faucet', { cookie }, { method: 'POST', body: '{}' })
    expect(asked.at(-1)).toMatchObject({ name: 'chain', url: '/faucet' })
    await ask('/ipfs/bafy?format=raw', { cookie })
    expect(asked.at(-1)).toMatchObject({ name: 'ipfs', url: '/ipfs/bafy?format=raw' })
  })

  test('a part that is away is a 502', async () => {
    const upstreams = { api: ['http://127.0.0.1:1'], chain: [], ipfs: [] }
    const { intercept } = createFront({ guard, upstreams, isTrusted })
    const server = createServer((request, response) => void intercept?.(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    expect((await fetch(`http://127.0.0.1:${port}/auth`)).status).toBe(502)
    server.close()
  })

  test('marks every page in a browser, and the mark stays when one scrolls', async (context) => {
    const executablePath = await findChromium(process.env, context.signal)
    if (executablePath === undefined) return context.skip('there is no Chromium')
    const browser = await startBrowser(executablePath)
    try {
      const page = await (await browser.newContext({ extraHTTPHeaders: { cookie } })).newPage()
      for (const path of ['/', '/proof/abc', '/verify', '/vaults', '/sign', '/approve']) {
        const response = await page.goto(`${url}${path}`)
        expect(response?.headers()['countersign-silicon'], path).toBe('MOCK')
        const strip = page.getByRole('note').filter({ hasText: 'MOCK: simulated silicon' })
        expect(await strip.isVisible(), path).toBe(true)
        expect(await page.title()).toContain('MOCK')
        await page.evaluate(() => {
          document.body.style.height = '5000px'
          window.scrollTo(0, 4000)
        })
        expect(await strip.evaluate((element) => element.getBoundingClientRect().top), path).toBe(0)
      }
    } finally {
      await browser.close()
    }
  })
})
