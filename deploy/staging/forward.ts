import { type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { MOCK, SILICON_HEADER, type TrustedProxies } from '@countersign/service'

/** How long a call may take; streams of events say something every 15 seconds. */
const SILENCE_MS = 60_000

/** Of the connection, not of the message (RFC 9110 §7.6.1). */
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']

/** What lets a visitor in, for those alone who judge it. */
const CREDENTIALS = ['cookie', 'authorization']

/** A path of the target. `//host`, `/\host` and `http://host/` would be read as somebody else's address. */
const PATH = /^\/(?![/\\])/

export type ForwardParameters = {
  /** Plain http within one machine or cluster; asked in turn until one can be reached. */
  targets: readonly string[]
  /** In place of the path that was asked for. */
  path?: string
  /** Whether the target gets the visitor's cookies and password (no). */
  withCredentials?: boolean
  /** Whose `X-Forwarded-For` is kept (nobody's): otherwise what the caller says about its own address is not believed. */
  isTrusted?: TrustedProxies
}

/** Hands a request on, and its answer back, marked. The caller chooses neither host nor port. */
export function forward(incoming: IncomingMessage, outgoing: ServerResponse, parameters: ForwardParameters): void {
  const [target, ...others] = parameters.targets
  const { path = incoming.url ?? '' } = parameters
  if (!PATH.test(path)) return void refuse(outgoing, 400)
  if (target === undefined) return void refuse(outgoing, 502)
  const call = requestHttp(new URL(target), {
    path,
    method: incoming.method ?? 'GET',
    headers: toHeaders(incoming, parameters),
    timeout: SILENCE_MS,
  })
  let hasConnected = false
  // Nothing of the body is taken before somebody is there for it.
  const send = () => {
    hasConnected = true
    incoming.pipe(call)
  }
  call.on('socket', (own) => (own.connecting ? own.once('connect', send) : send()))
  call.on('timeout', () => call.destroy())
  call.on('response', (answer) => {
    // An answer has its own headers; those of this server are for its own files. The mark is on all.
    for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name)
    const own = Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.includes(name))
    outgoing.writeHead(answer.statusCode ?? 502, { ...Object.fromEntries(own), [SILICON_HEADER]: MOCK })
    // Ends both when either ends too early, so that nobody takes half of an answer for all, or waits for the rest.
    pipeline(answer, outgoing, () => {})
  })
  call.on('error', () => {
    if (outgoing.destroyed) return
    // Nothing of the call has gone out, so another may have it.
    if (!hasConnected) return forward(incoming, outgoing, { ...parameters, targets: others })
    if (outgoing.headersSent) outgoing.destroy()
    else refuse(outgoing, 502)
  })
  outgoing.once('close', () => call.destroy())
}

function toHeaders({ headers, socket }: IncomingMessage, { withCredentials, isTrusted }: ForwardParameters) {
  const left = [...HOP_BY_HOP, ...(withCredentials ? [] : CREDENTIALS)]
  const kept = Object.entries(headers).filter(([name]) => !left.includes(name))
  const peer = socket.remoteAddress ?? ''
  const earlier = isTrusted?.(peer) ? headers['x-forwarded-for'] : undefined
  return { ...Object.fromEntries(kept), 'x-forwarded-for': [earlier, peer].filter(Boolean).join(', ') }
}

function refuse(outgoing: ServerResponse, status: 400 | 502): void {
  outgoing.writeHead(status, { 'cache-control': 'no-store', [SILICON_HEADER]: MOCK }).end()
}
