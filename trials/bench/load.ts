import { once } from 'node:events'
import { connect } from 'node:net'
import type { Approval, Hex, Stamp } from '@countersign/protocol'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import { createAccounts, createTx, createUser, toDigest } from '@countersign/testing/stack'

/** Time that each simulated quote takes. */
export const QUOTE_MS = 39

/** One connection that sends prepared requests and waits for each answer. */
export type Caller = { call(request: Buffer): Promise<string>; close(): void }

export function toRequest(start: string, headers: Record<string, string> = {}, body = ''): Buffer {
  const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries({ host: 'localhost', ...headers, ...length }).map((line) => line.join(': '))
  return Buffer.from(`${start} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
}

/** Reads just enough HTTP. A client library would use more of the two cores than the measured service. */
export async function connectCaller(url: string): Promise<Caller> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.setNoDelay(true)
  await once(socket, 'connect')
  let received = ''
  /** Length of the whole answer, once its headers have arrived. */
  let length: number | undefined
  let waiting: PromiseWithResolvers<string> | undefined
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    received += chunk
    length ??= readLength(received)
    if (length === undefined || received.length < length) return
    const answer = received
    received = ''
    length = undefined
    waiting?.resolve(answer)
  })
  socket.on('error', (error) => waiting?.reject(error))
  socket.on('close', () => waiting?.reject(new Error('the connection was closed')))
  return {
    call(request) {
      waiting = Promise.withResolvers()
      socket.write(request)
      return waiting.promise
    },
    close() {
      waiting = undefined
      socket.destroy()
    },
  }
}

function readLength(received: string): number | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const length = /\r\ncontent-length: (\d+)/i.exec(received.slice(0, end))?.[1]
  if (length === undefined) throw new Error('expected an answer with content-length')
  return end + 4 + Number(length)
}

/** Returns the next request of a connection. */
type Requests = (connection: number) => Buffer

/**
 * Latencies and number of answers. The rate follows from the mean latency (Little's law), because a count per second depends on where a batch
 * ends. The first answer of each caller counts only in `count`: it meets no queue and would inflate the rate of short slices.
 */
export type Answered = { rate: number; latencies: number[]; count: number }

/** With more connections at once, some overflow the listen backlog and retry after a second. */
const CONNECT_TOGETHER = 128

/** Each connection sends its next request as soon as it has an answer, until the time is over. Then all wait for their last answer. */
async function applyLoad(parameters: {
  /** Used in turn by the connections. */
  urls: readonly string[]
  connections: number
  sliceMs: number
  next: Requests
}): Promise<Answered> {
  const { urls, connections, sliceMs, next } = parameters
  const callers: Caller[] = []
  while (callers.length < connections) {
    const count = Math.min(CONNECT_TOGETHER, connections - callers.length)
    const chosen = Array.from({ length: count }, (_, index) => urls[index % urls.length] ?? '')
    callers.push(...(await Promise.all(chosen.map(connectCaller))))
  }
  const latencies: number[] = []
  let count = 0
  let isOver = false
  const all = callers.map(async (caller, connection) => {
    for (let answers = 0; !isOver || answers < 2; answers++) {
      const sentAt = performance.now()
      const answer = await caller.call(next(connection))
      if (!answer.startsWith('HTTP/1.1 200')) {
        const body = answer.slice(answer.indexOf('\r\n\r\n')).trim()
        throw new Error(`request failed: ${answer.slice(0, 12)} ${body.slice(0, 400)}`)
      }
      count++
      if (answers > 0) latencies.push(performance.now() - sentAt)
    }
  })
  const timer = new Promise((resolve) => setTimeout(resolve, sliceMs))
  try {
    // A failed caller ends the slice immediately.
    await Promise.race([timer, Promise.all(all)])
    isOver = true
    await Promise.all(all)
    const waited = latencies.reduce((sum, latency) => sum + latency, 0)
    return { rate: (1000 * connections * latencies.length) / waited, latencies, count }
  } finally {
    isOver = true
    for (const caller of callers) caller.close()
  }
}

/** Signs in this many users and returns their session cookies. */
export async function signInAll({ url }: { url: string }, users: number): Promise<string[]> {
  const cookies: string[] = []
  for (const { sub } of createAccounts(users)) {
    const user = createUser({ url })
    await user.signIn(sub)
    cookies.push(user.cookie)
  }
  return cookies
}

/** A vault that a user signs with, and its approvers. */
export type LoadedVault = { address: Hex; approve(digest: Hex): Approval[] }

/** Signs a transaction's digest with the browser key of a session. */
export type Stamper = (digest: Hex) => Stamp

/** Users that sign with their own wallet or with a vault each, or callers that repeat the same requests. */
export type Load = { urls: readonly string[] } & (
  | {
      cookies: readonly string[]
      vaults?: readonly LoadedVault[] | undefined
      /** Of the sessions, if they have browser keys. */
      stampers?: readonly Stamper[] | undefined
    }
  | { requests: readonly Buffer[] }
)

/** Prepares requests before the measurement, each for a new transaction. */
function prepareSignings(parameters: {
  cookies: readonly string[]
  /** In the order of `cookies`. */
  vaults?: readonly LoadedVault[] | undefined
  stampers?: readonly Stamper[] | undefined
  connections: number
  count: number
}): Requests {
  const { cookies, vaults, stampers, connections, count } = parameters
  // A random start, so that no two calls use the same nonces.
  let nextNonce = Math.floor(Math.random() * 2 ** 48)
  const queues = Array.from({ length: connections }, (_, connection) => {
    const user = connection % cookies.length
    return Array.from({ length: Math.ceil(count / connections) }, () =>
      toSigning(cookies[user] ?? '', nextNonce++, { vault: vaults?.[user], stamper: stampers?.[user] }),
    ).values()
  })
  return (connection) => {
    const request = queues[connection]?.next().value
    if (request === undefined) throw new Error('ran out of prepared requests')
    return request
  }
}

function toSigning(
  cookie: string,
  nonce: number,
  { vault, stamper }: { vault: LoadedVault | undefined; stamper: Stamper | undefined },
): Buffer {
  const txMetadata = createTx(nonce)
  const digest = toDigest(txMetadata)
  const use = vault && { wallet: vault.address, rule: 0, approvals: vault.approve(digest) }
  const stamped = stamper && { stamp: stamper(digest) }
  const headers = { origin: APP_ORIGIN, 'content-type': 'application/json', cookie }
  return toRequest('POST /sign/digest', headers, JSON.stringify({ digest, txMetadata, ...use, ...stamped }))
}

/** Signs this many transactions and returns their slugs. */
export async function signMany(
  { url }: { url: string },
  { cookies, count, connections = 64 }: { cookies: readonly string[]; count: number; connections?: number },
): Promise<string[]> {
  const next = prepareSignings({ cookies, connections, count })
  const share = Math.ceil(count / connections)
  const slugs: string[] = []
  const lanes = Array.from({ length: Math.ceil(count / share) }, async (_, connection) => {
    const caller = await connectCaller(url)
    try {
      for (let left = Math.min(share, count - connection * share); left > 0; left--) {
        const answer = await caller.call(next(connection))
        const slug = /"slug":"([^"]+)"/.exec(answer)?.[1]
        if (slug === undefined) throw new Error(`signing failed: ${answer.slice(0, 400)}`)
        slugs.push(slug)
      }
    } finally {
      caller.close()
    }
  })
  await Promise.all(lanes)
  return slugs
}

/** Upper bound of answers per second on any machine. */
const MAX_PER_SECOND = 4_000
/** Extra requests per connection, because some connections get more answers than others. */
const SPARE_EACH = 4

export function loadOnce(load: Load, connections: number, sliceMs: number): Promise<Answered> {
  const { urls } = load
  if ('requests' in load) {
    const { requests } = load
    const next = () => requests[Math.floor(Math.random() * requests.length)] ?? Buffer.alloc(0)
    return applyLoad({ urls, connections, sliceMs, next })
  }
  // No answer is faster than a quote, and a coordinator may have two enclaves.
  const most = Math.min((MAX_PER_SECOND * sliceMs) / 1000, (2 * connections * sliceMs) / QUOTE_MS)
  const next = prepareSignings({ ...load, connections, count: Math.ceil(most) + SPARE_EACH * connections })
  return applyLoad({ urls, connections, sliceMs, next })
}
