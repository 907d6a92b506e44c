import { createServer, type Server, type ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { DirectRoutes } from './directRoutes.ts'

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

type HttpServerParameters = {
  /** Asked first. */
  direct: DirectRoutes
  fetch: Parameters<typeof getRequestListener>[0]
  /** Answers requests that cannot be parsed. */
  refuse(error: unknown): Response
  limits?: ServerLimits
}

/** The server that an app is reached through. It does not listen yet. */
export function createHttpServer({ direct, fetch, refuse, limits = LIMITS }: HttpServerParameters): HttpServer {
  const { headersMs: headersTimeout, requestMs: requestTimeout, checkMs: connectionsCheckingInterval } = limits
  const options = { headersTimeout, requestTimeout, connectionsCheckingInterval, maxHeaderSize: MAX_HEADER_BYTES }
  const throughFramework = getRequestListener(fetch, { hostname: 'localhost', errorHandler: refuse })
  const answers = new Set<ServerResponse>()
  const server = createServer(options, (incoming, outgoing) => {
    answers.add(outgoing)
    outgoing.once('close', () => answers.delete(outgoing))
    outgoing.on('prefinish', () => {
      // The system has taken all of it.
      if (outgoing.socket?.writableLength === 0) return
      const timer = setTimeout(() => outgoing.destroy(), limits.answerMs).unref()
      outgoing.once('close', () => clearTimeout(timer))
    })
    if (!direct(incoming, outgoing)) void throughFramework(incoming, outgoing)
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  server.timeout = SILENCE_MS
  return Object.assign(server, { answers })
}
