import { createSign, generateKeyPairSync, hash } from 'node:crypto'
import { chmod, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { Socket } from 'node:net'
import { createSelfSignedCertificate } from '@countersign/attestation/certificates'
import { callerHeaders, enclavePaths, isBodyTooLarge, readBounded } from '@countersign/protocol/core'
import { closeServer, trackAnswers } from '@countersign/service'
import { EnclaveError } from './errors.ts'
import { type App, type Reply, toReply } from './serveCalls.ts'

/** Where to listen. The key for `https` is created at start, and only a quote proves it. */
export type Listen =
  | { kind: 'http'; host: string; port: number }
  | { kind: 'unix'; path: string }
  | { kind: 'https'; host: string; port: number }

/** A TLS key created at start, which never leaves this process, and SHA-256 of its SubjectPublicKeyInfo. */
export type TlsIdentity = { key: string; cert: string; keyHash: Uint8Array<ArrayBuffer> }

/** 256 items of a kilobyte or two, fewer with large calldata, the leaves of some thousands of statements, or states. */
const MAX_SIGN_BYTES = 4_194_304
const LARGE_PATHS: ReadonlySet<string> = new Set([enclavePaths.sign, enclavePaths.release, enclavePaths.log])
/** All other calls are small. */
const MAX_BODY_BYTES = 131_072
/**
 * Memory for all bodies being read or answered. Callers whose signature is not verified before the body share the smaller part, so that they
 * can't take memory from verified ones.
 */
const KNOWN_BYTES = 67_108_864
const UNKNOWN_BYTES = 16_777_216
/** Coordinators need only a handful of connections each. */
const MAX_CONNECTIONS = 512
/**
 * How many connections may be without an admitted call. At the limit, the oldest of them is closed, so that unknown callers can't lock out
 * known ones.
 */
const MAX_STRANGERS = 448
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

export type Budgets = { known: ByteBudget; unknown: ByteBudget }

export type ServerLimits = {
  budgets?: Budgets
  /** How long a caller may leave its answer unread. */
  unreadMs?: number
}

export function createBudgets(): Budgets {
  return { known: createByteBudget(KNOWN_BYTES), unknown: createByteBudget(UNKNOWN_BYTES) }
}

export type RunningServer = { address: string; close(): Promise<void> }

/** Listens and passes whole calls to the app. */
export async function startServer(
  app: App,
  listen: Listen,
  tls: TlsIdentity | undefined,
  { budgets = createBudgets(), unreadMs = 10_000 }: ServerLimits = {},
): Promise<RunningServer> {
  const connections = createConnections()
  const latest = new WeakMap<Socket, ServerResponse>()
  const onRequest = (request: IncomingMessage, response: ServerResponse) => {
    // Callers wait for each answer. Without this check, one that doesn't could have thousands of unread answers on one connection.
    if (latest.get(request.socket)?.writableEnded === false) return hangUp(request.socket)
    latest.set(request.socket, response)
    // The limit until the kernel has taken the whole answer; after that the idle limit applies.
    response.once('prefinish', () => request.socket.setTimeout(unreadMs))
    const onAdmitted = () => connections.admit(request.socket)
    // A caller that hangs up gets no answer.
    answer(app, { budgets, onAdmitted }, request, response).catch(() => response.destroy())
  }
  const options = {
    keepAliveTimeout: 30_000,
    requestTimeout: 30_000,
    headersTimeout: 10_000,
    maxHeaderSize: 16_384,
    // Node would otherwise answer requests without a Host header itself, without limit.
    requireHostHeader: false,
  }
  const secure = { minVersion: 'TLSv1.3', handshakeTimeout: 10_000 } as const
  const server =
    listen.kind === 'https' && tls !== undefined
      ? createHttpsServer({ ...options, ...secure, key: tls.key, cert: tls.cert }, onRequest)
      : createHttpServer(options, onRequest)
  // Not `maxConnections`: Node would close new connections and keep those of unknown callers.
  server.on('connection', connections.add)
  // Node would otherwise answer these itself too.
  server.on('checkExpectation', onRequest)
  const answers = trackAnswers(server)
  await start(server, listen)
  return {
    address: toAddress(server, listen),
    close: () => closeServer(server, answers),
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
  // Every process that can open the socket can call, but callers must sign.
  if (listen.kind === 'unix') await chmod(listen.path, 0o600)
}

function toAddress(server: Server, listen: Listen): string {
  if (listen.kind === 'unix') return `unix:${listen.path}`
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : listen.port
  return `${listen.kind}://${listen.host.includes(':') ? `[${listen.host}]` : listen.host}:${port}`
}

/** All connections, and those without an admitted call, which are closed first when the limit is reached. */
function createConnections() {
  const open = new Set<Socket>()
  const strangers = new Map<string, Socket>()
  // A call over TLS has another socket than its connection, but the same address.
  const toName = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`
  return {
    add(socket: Socket) {
      const name = toName(socket)
      open.add(socket)
      strangers.set(name, socket)
      socket.once('close', () => {
        open.delete(socket)
        if (strangers.get(name) === socket) strangers.delete(name)
      })
      if (open.size <= MAX_CONNECTIONS && strangers.size <= MAX_STRANGERS) return
      // The newest connection itself, if all others belong to known callers.
      const [oldest] = strangers
      if (oldest === undefined) return
      oldest[1].destroy()
      open.delete(oldest[1])
      strangers.delete(oldest[0])
    },
    admit: (socket: Socket) => strangers.delete(toName(socket)),
  }
}

/**
 * Closes a connection in the middle of its calls. Otherwise the parser would process everything it has read, and create objects for two
 * thousand calls of 64 KiB that no one answers. That 2 ends it is undocumented; a test checks it.
 */
function hangUp(socket: Socket & { parser?: { onIncoming: unknown } | null }) {
  if (socket.parser) socket.parser.onIncoming = () => 2
  socket.destroy()
}

type AnswerDeps = { budgets: Budgets; onAdmitted(): void }

async function answer(
  app: App,
  { budgets, onAdmitted }: AnswerDeps,
  request: IncomingMessage,
  response: ServerResponse,
) {
  const head = { method: request.method ?? '', path: request.url ?? '/', headers: request.headers }
  const isSigned = typeof head.headers[callerHeaders.signature] === 'string'
  const isLarge = LARGE_PATHS.has(head.path)
  const maxBytes = isLarge && isSigned ? MAX_SIGN_BYTES : MAX_BODY_BYTES
  const admission = await app.admit(head)
  // Each byte can be a chunk, which costs a hundred times its length. Our callers know the length of their bodies.
  if (head.headers['transfer-encoding'] !== undefined) {
    return send(app, response, toReply(new EnclaveError('invalid_request', 'a body needs a length')), false)
  }
  if (admission.refusal !== undefined) {
    return send(app, response, admission.refusal, await isDiscarded(request, maxBytes))
  }
  const { admitted } = admission
  if (admitted !== undefined) onAdmitted()
  const hold = createHold(admitted === undefined ? budgets.unknown : budgets.known)
  try {
    const body = await readBounded(hold.keep(toChunks(request)), maxBytes)
    send(app, response, await app.handle({ ...head, body, admitted }), true)
  } catch (error) {
    if (isBodyTooLarge(error)) {
      send(app, response, toReply(new EnclaveError('body_too_large', 'the body is too large')), false)
    } else if (error instanceof EnclaveError) {
      // Frees stored bytes before reading the rest.
      hold.giveBack()
      send(app, response, toReply(error), await isDiscarded(request, maxBytes))
    } else throw error
  } finally {
    hold.giveBack()
  }
}

function send(app: App, response: ServerResponse, { status, body }: Reply, isWhole: boolean) {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    // The rest of an oversized body isn't read, and shutdown doesn't wait for the next call.
    ...(!isWhole || app.isStopping() ? { connection: 'close' } : {}),
  })
  response.end(text)
}

/** Keeps the connection open for the answer. */
function toChunks(request: IncomingMessage): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => request.iterator({ destroyOnReturn: false }) }
}

/** Reads a body and discards it, so that the caller gets its answer. Returns false if it is too large. */
async function isDiscarded(request: IncomingMessage, maxBytes: number): Promise<boolean> {
  let length = 0
  for await (const chunk of toChunks(request)) {
    length += chunk.length
    if (length > maxBytes) return false
  }
  return true
}

/** Limits the bytes in memory over all connections. */
type ByteBudget = {
  /** Returns false, and takes nothing, if the limit is reached. */
  take(bytes: number): boolean
  giveBack(bytes: number): void
  held(): number
  /** The highest use so far. */
  peak(): number
}

function createByteBudget(maxBytes: number): ByteBudget {
  let held = 0
  let peak = 0
  return {
    take(bytes) {
      if (!(held + bytes <= maxBytes)) return false
      held += bytes
      peak = Math.max(peak, held)
      return true
    },
    giveBack(bytes) {
      held -= bytes
    },
    held: () => held,
    peak: () => peak,
  }
}

/** One call's share of a budget, from its first byte until it is answered. */
function createHold(budget: ByteBudget) {
  let held = 0
  return {
    /** Throws `overloaded` if the budget is exhausted. */
    async *keep(chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        if (!budget.take(chunk.length)) throw new EnclaveError('overloaded', 'too many callers send bodies at once')
        held += chunk.length
        yield chunk
      }
    },
    giveBack() {
      budget.giveBack(held)
      held = 0
    },
  }
}
