import { createSign, generateKeyPairSync, hash } from 'node:crypto'
import { chmod, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createSelfSignedCertificate } from '@countersign/attestation/certificates'
import { callerHeaders, enclavePaths, readBounded, ServiceError } from '@countersign/protocol'
import type { App } from './serveCalls.ts'

/** Where to listen. The key of `https` is made at the start, and only a quote proves it. */
export type Listen =
  | { kind: 'http'; host: string; port: number }
  | { kind: 'unix'; path: string }
  | { kind: 'https'; host: string; port: number }

/** A TLS key made at start, which never leaves this process, and SHA-256 of its SubjectPublicKeyInfo. */
export type TlsIdentity = { key: string; cert: string; keyHash: Uint8Array<ArrayBuffer> }

/** 256 items of a kilobyte or two, or fewer with large calldata. */
const MAX_SIGN_BYTES = 4_194_304
/** All other calls are small. Bodies are read before their signature can be checked, so this much memory anyone can fill. */
const MAX_BODY_BYTES = 131_072
/** Coordinators keep a handful of connections each. */
const MAX_CONNECTIONS = 512
/** How long a stop waits for callers to close their connections. */
const CLOSE_MS = 5_000
const DAY_MS = 86_400_000

export function createTlsIdentity(now: number): TlsIdentity {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const cert = createSelfSignedCertificate({
    commonName: 'countersign-enclave',
    publicKey: spki,
    sign: (message) => createSign('sha256').update(message).sign(privateKey),
    validity: { notBefore: new Date(now - DAY_MS), notAfter: new Date(now + 3650 * DAY_MS) },
  })
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert,
    keyHash: new Uint8Array(hash('sha256', spki, 'buffer')),
  }
}

export type RunningServer = { address: string; close(): Promise<void> }

/** Listens and hands whole calls to the app. */
export async function startServer(app: App, listen: Listen, tls: TlsIdentity | undefined): Promise<RunningServer> {
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    // A caller that hangs up is not answered.
    answer(app, request, response).catch(() => response.destroy())
  }
  const options = { keepAliveTimeout: 30_000, requestTimeout: 30_000, headersTimeout: 10_000, maxHeaderSize: 16_384 }
  const server =
    listen.kind === 'https' && tls !== undefined
      ? createHttpsServer({ ...options, key: tls.key, cert: tls.cert, minVersion: 'TLSv1.3' }, onRequest)
      : createHttpServer(options, onRequest)
  server.maxConnections = MAX_CONNECTIONS
  await start(server, listen)
  return {
    address: toAddress(server, listen),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeIdleConnections()
      const deadline = setTimeout(() => server.closeAllConnections(), CLOSE_MS)
      await closed
      clearTimeout(deadline)
    },
  }
}

async function start(server: Server, listen: Listen) {
  if (listen.kind === 'unix') await rm(listen.path, { force: true })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.once('listening', resolve)
    if (listen.kind === 'unix') server.listen(listen.path)
    else server.listen(listen.port, listen.host)
  })
  // Every process that can open the socket can call; callers still have to sign.
  if (listen.kind === 'unix') await chmod(listen.path, 0o600)
}

function toAddress(server: Server, listen: Listen): string {
  if (listen.kind === 'unix') return `unix:${listen.path}`
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : listen.port
  return `${listen.kind}://${listen.host.includes(':') ? `[${listen.host}]` : listen.host}:${port}`
}

async function answer(app: App, request: IncomingMessage, response: ServerResponse) {
  const path = request.url ?? '/'
  const isSigned = typeof request.headers[callerHeaders.signature] === 'string'
  const body = await readBody(
    request,
    path === enclavePaths.signTransactions && isSigned ? MAX_SIGN_BYTES : MAX_BODY_BYTES,
  )
  const reply =
    body === undefined
      ? { status: 413, body: { error: { code: 'body_too_large', message: 'the body is too large' } } }
      : await app.handle({ method: request.method ?? '', path, headers: request.headers, body })
  const text = JSON.stringify(reply.body)
  response.writeHead(reply.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    // The rest of a body that was too large is not read, and a stop does not wait for the next call.
    ...(body === undefined || app.isStopping() ? { connection: 'close' } : {}),
  })
  response.end(text)
}

/** The whole body, or undefined when it is too large. Throws where the caller hangs up. */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | undefined> {
  try {
    // The connection stays open, for the answer.
    return await readBounded(request.iterator({ destroyOnReturn: false }), maxBytes)
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'body_too_large') return undefined
    throw error
  }
}
