import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
// Keeps imports to these files, because the image contains all of them.
import { drainServer } from '../../packages/service/src/drainServer.ts'
import { readStaticFiles, type StaticFile, toStaticFile } from '../../packages/service/src/staticFiles.ts'

/** The public web server: serves the files of `npm run build:web` and a configuration from outside the image, with security headers. */

/** Names in assets/ contain a hash of the content. */
const FOREVER = 'public, max-age=31536000, immutable'
const ASK_AGAIN = 'no-cache'
/** The verifier. A page of this site would prove nothing, so browsers save these files, to be compared with a release. */
const DOWNLOADS = new Set(['/countersign-verify.mjs', '/verify.html'])

/** The same as the coordinators. Proxies keep connections for 60 s and could otherwise send a call on a closing one. */
const KEEP_ALIVE_MS = 75_000
/** Time for slow downloads; containers have ten seconds to stop. */
const STOP_MS = 8_000

/** Reads all files at startup, so no path can reach other files. */
export function createWebServer({ folder, configText }: { folder: string; configText: string }): Server {
  const files = readStaticFiles(folder)
  const page = files.get('index.html')
  if (page === undefined) throw new Error(`index.html not found in ${folder}: run npm run build:web`)
  files.set('config.json', toStaticFile('config.json', Buffer.from(configText)))
  const headers = toHeaders(parseConfig(configText))

  const limits = { headersTimeout: 10_000, requestTimeout: 10_000, keepAliveTimeout: KEEP_ALIVE_MS }
  return createServer(limits, (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    const path = toPath(request)
    if (request.method !== 'GET' && request.method !== 'HEAD') return refuse(response, 405, { allow: 'GET, HEAD' })
    if (path === undefined) return refuse(response, 400)
    if (path === '/health') return void response.writeHead(200, { 'cache-control': 'no-store' }).end('ok\n')
    // The app routes other paths itself. A missing script returns 404, because the page in its place would cause confusing errors.
    const file = files.get(path.slice(1)) ?? (path.startsWith('/assets/') ? undefined : page)
    if (file === undefined) return refuse(response, 404)
    if (DOWNLOADS.has(path)) response.setHeader('content-disposition', 'attachment')
    // It names the service, for verifiers that are pages too.
    if (path === '/config.json') response.setHeader('access-control-allow-origin', '*')
    void send(request, response, { file, caching: path.startsWith('/assets/') ? FOREVER : ASK_AGAIN })
  })
}

function toPath({ url = '' }: IncomingMessage): string | undefined {
  try {
    return decodeURIComponent(new URL(url, 'http://web').pathname)
  } catch {
    return undefined
  }
}

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'text/plain', 'cache-control': 'no-store', ...headers }).end()
}

type Sent = { file: StaticFile; caching: string }

async function send(request: IncomingMessage, response: ServerResponse, { file, caching }: Sent) {
  const shared = { etag: file.etag, 'cache-control': caching, vary: 'accept-encoding' }
  if (request.headers['if-none-match'] === file.etag) return void response.writeHead(304, shared).end()
  const isGzipped = /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))
  const body = isGzipped ? await file.compress() : file.body
  response.writeHead(200, {
    ...shared,
    'content-type': file.type,
    'content-length': body.length,
    ...(isGzipped ? { 'content-encoding': 'gzip' } : {}),
  })
  response.end(request.method === 'HEAD' ? undefined : body)
}

function parseConfig(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new Error('the configuration is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('the configuration is not an object')
  return value as Record<string, unknown>
}

/** Allows any https address, because visitors may name their own nodes. Plain http is allowed only for addresses in the configuration. */
function toHeaders(config: Record<string, unknown>): Record<string, string> {
  const { attestations, trust } = config as { attestations?: { rpcUrl?: unknown }; trust?: { witnessUrls?: unknown } }
  const witnesses = Array.isArray(trust?.witnessUrls) ? trust.witnessUrls : []
  const { apiBaseUrl, rpcUrl, ipfsGatewayUrl, faucetUrl } = config
  const urls = [apiBaseUrl, rpcUrl, ipfsGatewayUrl, faucetUrl, attestations?.rpcUrl, ...witnesses]
  const plain = urls.flatMap((url) => {
    return typeof url === 'string' && URL.canParse(url) && url.startsWith('http:') ? new URL(url).origin : []
  })
  const policy = {
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': "'self'",
    'img-src': "'self' data:",
    'connect-src': ["'self'", 'https:', ...new Set(plain)].join(' '),
    'worker-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'self'",
    'frame-ancestors': "'none'",
  }
  return {
    'content-security-policy': Object.entries(policy)
      .map((directive) => directive.join(' '))
      .join('; '),
    'cross-origin-opener-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'strict-transport-security': 'max-age=31536000; includeSubDomains',
    'x-content-type-options': 'nosniff',
  }
}

function runWebServer(): void {
  const { HOST = '127.0.0.1', PORT = '8088', WEB_CONFIG_FILE = '' } = process.env
  const folder = join(import.meta.dirname, '../../apps/web/dist')
  const server = createWebServer({ folder, configText: readFileSync(WEB_CONFIG_FILE, 'utf8') })
  server.listen(Number(PORT), HOST, () => {
    process.stdout.write(
      `${JSON.stringify({ level: 'info', msg: 'Started the web server', address: `${HOST}:${PORT}` })}\n`,
    )
  })
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => stopWebServer(server))
  }
}

/** Answers pending requests and closes idle connections, then closes all others after some seconds. */
export function stopWebServer(server: Server): void {
  setTimeout(() => server.closeAllConnections(), STOP_MS).unref()
  void drainServer(server).then(() => server.close())
}

if (import.meta.main) {
  try {
    runWebServer()
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'unknown'
    process.stderr.write(`${JSON.stringify({ level: 'error', msg: 'Could not start', reason })}\n`)
    process.exitCode = 1
  }
}
