import { type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'

/** How long a call may take; streams of events say something every 15 seconds. */
const SILENCE_MS = 60_000

/** Of the connection, not of the message (RFC 9110 §7.6.1). */
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']

export type ForwardParameters = {
  /** Plain http within one machine or cluster; asked in turn until one can be reached. */
  targets: readonly string[]
  /** In place of the path that was asked for. */
  path?: string
}

/** Hands a request on, and its answer back. What the caller says about its own address is not believed. */
export function forward(incoming: IncomingMessage, outgoing: ServerResponse, parameters: ForwardParameters): void {
  const [target, ...others] = parameters.targets
  if (target === undefined) return void outgoing.writeHead(502, { 'cache-control': 'no-store' }).end()
  const { method, headers, socket } = incoming
  const kept = Object.entries(headers).filter(([name]) => !HOP_BY_HOP.includes(name) && name !== 'x-forwarded-for')
  const call = requestHttp(new URL(parameters.path ?? incoming.url ?? '/', target), {
    method: method ?? 'GET',
    headers: { ...Object.fromEntries(kept), 'x-forwarded-for': socket.remoteAddress ?? '' },
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
    // An answer has its own headers; those of this server are for its own files.
    for (const name of outgoing.getHeaderNames()) outgoing.removeHeader(name)
    const own = Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.includes(name))
    outgoing.writeHead(answer.statusCode ?? 502, Object.fromEntries(own))
    answer.pipe(outgoing)
  })
  call.on('error', () => {
    if (outgoing.destroyed) return
    // Nothing of the call has gone out, so another may have it.
    if (!hasConnected) return forward(incoming, outgoing, { ...parameters, targets: others })
    if (outgoing.headersSent) outgoing.destroy()
    else outgoing.writeHead(502, { 'cache-control': 'no-store' }).end()
  })
  outgoing.once('close', () => call.destroy())
}
