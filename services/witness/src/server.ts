import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { COSIGNATURES_HEADER, MAX_ADD_CHECKPOINT_BYTES, parseStatementPath } from '@countersign/log'
import { isBodyTooLarge, readBounded } from '@countersign/protocol'
import { closeServer, type Log, trackAnswers } from '@countersign/service'
import type { Reply, Witness } from './witness.ts'

export type RunningServer = { address: string; close(): Promise<void> }

/** Each log keeps a connection. */
const MAX_CONNECTIONS = 256
const LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 16_384,
}

export type ServeDeps = { witness: Witness; count(status: number): void; log: Log }

/** The witness's HTTP server. */
export function serveWitness(deps: ServeDeps, listen: { host: string; port: number }): Promise<RunningServer> {
  const server = createServer(LIMITS, (request, response) => {
    answer(deps, request)
      .catch((error: unknown): Reply => {
        // For example, a full disk. Nothing was cosigned, and the log retries. Aborted requests are not logged, because callers could fill
        // the log with them.
        const reason = error instanceof Error ? error.message : 'unknown'
        if (!response.destroyed) deps.log.error({ msg: 'Could not answer', reason })
        return { status: 500, body: 'internal error\n' }
      })
      .then((reply) => {
        if (response.destroyed) return
        if (request.url === '/add-checkpoint') deps.count(reply.status)
        send(request, response, reply)
      })
  })
  return startServer(server, listen)
}

/** Metrics, on a separate port that must not be public. */
export function serveMetrics(toText: () => string, port: number): Promise<RunningServer> {
  const server = createServer(LIMITS, (request, response) => {
    const isAsked = request.method === 'GET' && request.url === '/metrics'
    const reply = isAsked ? { status: 200, body: toText() } : { status: 404, body: 'not found\n' }
    send(request, response, reply)
  })
  return startServer(server, { host: '127.0.0.1', port })
}

async function answer({ witness }: ServeDeps, request: IncomingMessage): Promise<Reply> {
  const { method, url = '' } = request
  if (url === '/add-checkpoint') {
    if (method !== 'POST') return { status: 405, body: 'use POST\n' }
    const body = await readBody(request)
    if (body === undefined) return { status: 413, body: 'the body is too large\n' }
    return witness.addCheckpoint(body, { isEd25519Only: request.headers[COSIGNATURES_HEADER] === 'ed25519' })
  }
  const [, originHash] = /^\/([0-9a-f]{64})\/checkpoint$/.exec(url) ?? []
  const question = parseStatementPath(url)
  const isKnown = question !== undefined || originHash !== undefined || url === '/health'
  if (!isKnown) return { status: 404, body: 'not found\n' }
  if (method !== 'GET') return { status: 405, body: 'use GET\n' }
  if (question !== undefined) return witness.getStatement(question)
  return originHash === undefined ? { status: 200, body: 'ok\n' } : witness.getCheckpoint(originHash)
}

/** Returns undefined if the body is too large. The connection stays open for the response. */
async function readBody(request: IncomingMessage): Promise<Uint8Array | undefined> {
  const chunks = { [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) }
  try {
    return await readBounded(chunks, MAX_ADD_CHECKPOINT_BYTES)
  } catch (error) {
    if (isBodyTooLarge(error)) return undefined
    throw error
  }
}

function send(request: IncomingMessage, response: ServerResponse, { status, body, type, isForPages }: Reply): void {
  response.writeHead(status, {
    'content-type': type ?? 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    ...(isForPages ? { 'access-control-allow-origin': '*' } : {}),
    // Ignores the rest of an unread body.
    ...(request.complete ? {} : { connection: 'close' }),
  })
  response.end(body)
}

async function startServer(server: Server, { host, port }: { host: string; port: number }): Promise<RunningServer> {
  server.maxConnections = MAX_CONNECTIONS
  const answers = trackAnswers(server)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  const actual = typeof address === 'object' && address !== null ? address.port : port
  return {
    address: `http://${host.includes(':') ? `[${host}]` : host}:${actual}`,
    close: () => closeServer(server, answers),
  }
}
