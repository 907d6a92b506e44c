import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Answered, AnswerRequest } from './answerRequest.ts'

/** How long a connection may keep its place without getting anywhere. */
export type ServerLimits = {
  /** Until the headers are there. */
  headersMs: number
  /** Until the body is there too: 128 KiB at 4 KiB a second. */
  requestMs: number
  /** Until an answer that is complete has been taken. A stream of events is not complete while it lasts. */
  answerMs: number
  /** How often the first two are looked at. */
  checkMs: number
}

/** Node's own would let a silent caller keep a connection for 5 minutes, and one that does not read for ever. */
const LIMITS: ServerLimits = { headersMs: 15_000, requestMs: 30_000, answerMs: 30_000, checkMs: 5_000 }

/** Longer than proxies keep theirs (60 s at nginx), which would else send a request into a connection that is being closed. */
const KEEP_ALIVE_MS = 75_000
/** A connection on which nothing moves at all; streams of events have a heartbeat every 15 s. */
const SILENCE_MS = 90_000

/** All headers together, the request line too; browsers with many sign-ins under way stay well below. */
const MAX_HEADER_BYTES = 16_384

/** `answers` are those that have not been taken whole, from the headers of their request on. */
export type HttpServer = Server & { readonly answers: ReadonlySet<ServerResponse> }

/** How long the rest of a body is read that nobody asked for: callers that still send would not see the answer. */
const UNREAD_MS = 500

/** The server that an app is reached through. It does not listen yet. */
export function createHttpServer(answerRequest: AnswerRequest, limits: ServerLimits = LIMITS): HttpServer {
  const { headersMs: headersTimeout, requestMs: requestTimeout, checkMs: connectionsCheckingInterval } = limits
  const options = { headersTimeout, requestTimeout, connectionsCheckingInterval, maxHeaderSize: MAX_HEADER_BYTES }
  const answers = new Set<ServerResponse>()
  // Shared by all requests.
  function onClose(this: ServerResponse) {
    answers.delete(this)
  }
  function onPrefinish(this: ServerResponse) {
    // The system has taken all of it.
    if (this.socket?.writableLength === 0) return
    const timer = setTimeout(() => this.destroy(), limits.answerMs).unref()
    this.once('close', () => clearTimeout(timer))
  }
  const server = createServer(options, (incoming, outgoing) => {
    answers.add(outgoing)
    outgoing.on('close', onClose)
    outgoing.on('prefinish', onPrefinish)
    const end = () => void outgoing.destroy()
    try {
      const answered = answerRequest(incoming, () => toSignal(outgoing))
      if (answered instanceof Promise) answered.then((answer) => send(answer, incoming, outgoing)).catch(end)
      else send(answered, incoming, outgoing)
    } catch {
      end()
    }
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.timeout = SILENCE_MS
  return Object.assign(server, { answers })
}

function send({ status, headers, body, encoding }: Answered, incoming: IncomingMessage, outgoing: ServerResponse) {
  if (!incoming.complete) outgoing.once('finish', () => endUnread(incoming))
  if (body === null || incoming.method === 'HEAD') {
    if (body instanceof ReadableStream) void body.cancel().catch(() => {})
    outgoing.writeHead(status, headers).end()
  } else if (body instanceof ReadableStream) {
    outgoing.writeHead(status, headers).flushHeaders()
    writeStream(body, outgoing)
  } else {
    headers['content-length'] = String(typeof body === 'string' ? Buffer.byteLength(body, encoding) : body.length)
    outgoing.writeHead(status, headers).end(body, encoding ?? 'utf8')
  }
}

/** Aborts when the caller is gone. */
function toSignal(outgoing: ServerResponse): AbortSignal {
  if (outgoing.destroyed) return AbortSignal.abort()
  const controller = new AbortController()
  outgoing.once('close', () => controller.abort())
  return controller.signal
}

/** Node would read it for as long as it comes. */
function endUnread(incoming: IncomingMessage) {
  if (incoming.complete) return
  incoming.resume()
  const timer = setTimeout(() => incoming.destroy(), UNREAD_MS).unref()
  incoming.once('close', () => clearTimeout(timer))
}

/** Each part is asked for when the one before has been taken. */
function writeStream(stream: ReadableStream<Uint8Array>, outgoing: ServerResponse) {
  const reader = stream.getReader()
  const end = () => void reader.cancel().catch(() => {})
  if (outgoing.destroyed) return end()
  outgoing.once('close', end)
  const readNext = () => void reader.read().then(write, () => outgoing.destroy())
  function write({ done, value }: { done: boolean; value?: Uint8Array | undefined }) {
    if (outgoing.destroyed) return
    if (done) outgoing.end()
    else if (outgoing.write(value)) readNext()
    else outgoing.once('drain', readNext)
  }
  readNext()
}
