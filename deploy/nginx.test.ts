import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type ClientRequestArgs, type IncomingHttpHeaders, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { findFreePorts } from '@countersign/testing'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createWebServer } from './web/server.ts'

const CONF = readFileSync(join(import.meta.dirname, 'nginx/web.conf'), 'utf8')
const NGINX = ['/usr/sbin/nginx', '/usr/local/sbin/nginx', '/opt/homebrew/bin/nginx'].find(existsSync)
if (NGINX === undefined) console.log('nginx not found: skipping deploy/nginx/web.conf')

const configText = JSON.stringify({ apiBaseUrl: 'https://api.example', rpcUrl: 'https://rpc.example', chainId: 1 })
const script = 'export const answer = 42\n'.repeat(100)

test('the page has exactly the headers of our server', async () => {
  const folder = await layFiles()
  const server = createWebServer({ folder: join(folder, 'dist'), configText })
  try {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { headers } = await send((server.address() as AddressInfo).port, '/')
    for (const name of SECURITY) {
      const written = new RegExp(`^  add_header ${name} (?:"([^"]*)"|(\\S+)) always;$`, 'im').exec(CONF)
      expect(written?.[1] ?? written?.[2], name).toBe(headers[name])
    }
  } finally {
    server.close()
    await rm(folder, { recursive: true })
  }
})

const SECURITY = [
  'content-security-policy',
  'cross-origin-opener-policy',
  'referrer-policy',
  'strict-transport-security',
  'x-content-type-options',
]
const COMPARED = [
  ...SECURITY,
  'access-control-allow-origin',
  'allow',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-type',
]

async function layFiles(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-nginx-'))
  // nginx's workers run as another user.
  chmodSync(folder, 0o755)
  await mkdir(join(folder, 'dist/assets'), { recursive: true })
  await writeFile(join(folder, 'secret.txt'), 'secret')
  await writeFile(join(folder, 'web-config.json'), configText)
  await writeFile(join(folder, 'dist/index.html'), `<html>page</html>${' '.repeat(300)}`)
  await writeFile(join(folder, 'dist/config.json'), 'from the build')
  await writeFile(join(folder, 'dist/.env'), 'secret')
  await writeFile(join(folder, 'dist/icon.svg'), '<svg/>')
  await writeFile(join(folder, 'dist/verify.html'), `<html>verifier</html>${' '.repeat(300)}`)
  await writeFile(join(folder, 'dist/countersign-verify.mjs'), script)
  await writeFile(join(folder, 'dist/assets/app-1.js'), script)
  await writeFile(join(folder, 'dist/assets/app-1.css'), 'a{}'.repeat(200))
  return folder
}

/** Sends the path unchanged, which `fetch` would normalize. */
async function send(port: number, path: string, options: ClientRequestArgs = {}) {
  const call = request({ host: '127.0.0.1', port, path, ...options })
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    call.once('response', resolve).once('error', reject).end()
  })
  return { status: response.statusCode, headers: response.headers, body: await buffer(response) }
}

describe.skipIf(NGINX === undefined)('the web app served by nginx', () => {
  let folder: string
  let nginx: ChildProcess
  let port: number
  let ours: Server
  let ourPort: number
  const settle = (text: string) =>
    text
      .replace('127.0.0.1:8088', `127.0.0.1:${port}`)
      .replace('/srv/countersign/web', join(folder, 'dist'))
      .replace('/etc/countersign/web-config.json', join(folder, 'web-config.json'))

  beforeAll(async () => {
    folder = await layFiles()
    ;[port = 0] = await findFreePorts(1)
    await writeFile(join(folder, 'web.conf'), settle(CONF))
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
      (name) => `${name}_temp_path ${join(folder, name)};`,
    )
    await writeFile(
      join(folder, 'nginx.conf'),
      `pid ${join(folder, 'nginx.pid')}; error_log ${join(folder, 'error.log')}; daemon off; events {}
      http { access_log off; ${temporary.join(' ')} include ${join(folder, 'web.conf')}; }`,
    )
    nginx = spawn(NGINX ?? '', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' })
    ours = createWebServer({ folder: join(folder, 'dist'), configText })
    await new Promise<void>((resolve) => ours.listen(0, '127.0.0.1', resolve))
    ourPort = (ours.address() as AddressInfo).port
    await vi.waitFor(async () => expect((await send(port, '/health')).status).toBe(200), { timeout: 30_000 })
  })
  afterAll(async () => {
    const ended = once(nginx, 'exit')
    nginx.kill('SIGTERM')
    await ended
    ours.close()
    ours.closeAllConnections()
    await rm(folder, { recursive: true })
  })

  const pick = (headers: IncomingHttpHeaders) => Object.fromEntries(COMPARED.map((name) => [name, headers[name]]))

  test('nginx accepts the configuration', () => {
    execFileSync(NGINX ?? '', ['-t', '-q', '-p', folder, '-c', join(folder, 'nginx.conf')])
  })

  test.each([
    '/',
    '/proof/abc',
    '/assets',
    '/assets/app-1.js',
    '/assets/app-1.css',
    '/config.json?x',
    '/icon.svg',
    '/verify.html',
    '/countersign-verify.mjs',
  ])('GET %s answers like our server, compressed and uncompressed', async (path) => {
    for (const encoding of ['gzip', 'identity']) {
      const options = { headers: { 'accept-encoding': encoding } }
      const [theirs, own] = [await send(port, path, options), await send(ourPort, path, options)]
      expect(theirs.status).toBe(own.status)
      // Our server also compresses files that are too short for nginx.
      const isShort = own.headers['content-encoding'] === 'gzip' && theirs.headers['content-encoding'] === undefined
      if (isShort) expect(theirs.body.length).toBeLessThan(256)
      const { 'content-encoding': _, ...expected } = pick(own.headers)
      expect(pick(theirs.headers)).toMatchObject(expected)
      if (encoding === 'identity') expect(theirs.body).toEqual(own.body)
      else if (!isShort) expect(theirs.headers['content-encoding']).toBe('gzip')
      expect(String(theirs.headers.vary).toLowerCase()).toBe('accept-encoding')
    }
  })

  test("doesn't send an unchanged file again", async () => {
    const { headers } = await send(port, '/assets/app-1.js')
    const again = await send(port, '/assets/app-1.js', { headers: { 'if-none-match': headers.etag } })
    expect(again).toMatchObject({ status: 304, body: Buffer.alloc(0) })
    expect(again.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    expect(again.headers['content-security-policy']).toBe(headers['content-security-policy'])
  })

  test.each(['/assets/app-0.js', '/assets/', '/.env', '/.git/config', '/assets/.x'])('%s returns 404', async (path) => {
    const { status, headers, body } = await send(port, path)
    expect(status).toBe(404)
    expect(headers['cache-control']).toBe('no-store')
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    expect(body.toString()).not.toMatch(/secret|Index of|nginx\/\d/)
  })

  test.each(['/../secret.txt', '/%2e%2e/secret.txt', '/..%2fsecret.txt', '/assets/../../secret.txt', '/%2eenv'])(
    '%s reaches no file outside',
    async (path) => {
      expect((await send(port, path)).body.toString()).not.toContain('secret')
    },
  )

  test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])('rejects %s', async (method) => {
    const { status, headers } = await send(port, '/', { method })
    expect(status).toBe(405)
    expect(headers).not.toHaveProperty('server', expect.stringMatching(/\d/))
    if (method !== 'TRACE') expect(headers.allow).toBe('GET, HEAD')
  })

  test('HEAD returns the same headers without a body', async () => {
    const head = await send(port, '/', { method: 'HEAD' })
    expect(head).toMatchObject({ status: 200, body: Buffer.alloc(0) })
    expect(pick(head.headers)).toEqual(pick((await send(port, '/')).headers))
  })
})
