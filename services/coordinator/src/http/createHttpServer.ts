import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { HandleRequest, HttpResponse } from './requestHandler.ts'

/** Time limits for connections that make no progress. */
export type ServerLimits = {
  /** Until all headers have arrived. */
  headersMs: number
  /** Until the whole body has arrived, too: 128 KiB at 4 KiB a second. */
  requestMs: number
  /** Until the caller has read a complete response. Streams of events don't count before they end. */
  answerMs: number
  /** How often `headersMs` and `requestMs` are checked. */
  checkMs: number
}

/** With Node's defaults, a silent caller could keep a connection for 5 minutes, and one that doesn't read could keep it without limit. */
const LIMITS: ServerLimits = { headersMs: 15_000, requestMs: 30_000, answerMs: 30_000, checkMs: 5_000 }

/** Longer than the 60 s of proxies such as nginx. Otherwise a proxy could send a request on a connection that is closing. */
const KEEP_ALIVE_MS = 75_000
/** For a connection without any traffic. Streams of events send a heartbeat every 15 s. */
const SILENCE_MS = 90_000

/** The limit for all headers and the request line. Browsers with many unfinished sign-ins stay well below it. */
const MAX_HEADER_BYTES = 16_384

/** `answers` are the responses that callers have not read completely, including those to requests in progress. */
export type HttpServer = Server & { readonly answers: ReadonlySet<ServerResponse> }

/** How long the server reads the rest of an unread body. A caller that is still sending would otherwise not see the response. */
const UNREAD_MS = 500

/** Creates the HTTP server. It does not listen yet. */
export function createHttpServer(handleRequest: HandleRequest, limits: ServerLimits = LIMITS): HttpServer {
  const { headersMs: headersTimeout, requestMs: requestTimeout, checkMs: connectionsCheckingInterval } = limits
  const options = { headersTimeout, requestTimeout, connectionsCheckingInterval, maxHeaderSize: MAX_HEADER_BYTES }
  const answers = new Set<ServerResponse>()
  // One function for all requests, to save memory.
  function onClose(this: ServerResponse) {
    answers.delete(this)
  }
  function onPrefinish(this: ServerResponse) {
    // The operating system has accepted all of it.
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
      const response = handleRequest(incoming, () => toSignal(outgoing))
      if (response instanceof Promise) response.then((final) => send(final, incoming, outgoing)).catch(end)
      else send(response, incoming, outgoing)
    } catch {
      end()
    }
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.timeout = SILENCE_MS
  return Object.assign(server, { answers })
}

function send({ status, headers, body, encoding }: HttpResponse, incoming: IncomingMessage, outgoing: ServerResponse) {
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

/** Returns a signal that aborts when the caller disconnects. */
function toSignal(outgoing: ServerResponse): AbortSignal {
  if (outgoing.destroyed) return AbortSignal.abort()
  const controller = new AbortController()
  outgoing.once('close', () => controller.abort())
  return controller.signal
}

/** Node would read the body without a time limit. */
function endUnread(incoming: IncomingMessage) {
  if (incoming.complete) return
  incoming.resume()
  const timer = setTimeout(() => incoming.destroy(), UNREAD_MS).unref()
  incoming.once('close', () => clearTimeout(timer))
}

/** Reads a chunk only after the caller has accepted the previous one. */
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
