import { lookup as lookupAddresses } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction, type TcpSocketConnectOpts } from 'node:net'
import { withinTimeLimit } from '@countersign/protocol'

/** Why a delivery failed. The code contains no text from the receiver. */
export class WebhookFailure extends Error {
  override name = 'WebhookFailure'
  readonly code: WebhookFailureCode
  constructor(code: WebhookFailureCode) {
    super(code)
    this.code = code
  }
}

type WebhookFailureCode =
  /** The receiver's name resolves to an address that isn't public. Nothing was sent. */
  | 'address_refused'
  | 'name_unknown'
  /** No connection, no TLS, or a connection that closed before the end of the answer. */
  | 'connection_failed'
  | 'timed_out'
  /** The receiver redirects, which isn't followed. */
  | 'redirected'
  | `status_${number}`

type Lookup = (hostname: string) => Promise<readonly string[]>

export type PostWebhookDeps = {
  /** Returns all addresses of a name. See `createLookup`. */
  lookup: Lookup
  /** Allows receivers on this machine. For development only. */
  allowsLoopback: boolean
  timeoutMs: number
  /** Trusted authorities. Default: Node's. */
  ca?: string
}

/** Limit of an answer, which is discarded. */
const MAX_ANSWER_BYTES = 65_536
/** How many of a name's addresses to try. */
const MAX_TRIED = 4

/**
 * Sends one webhook. Resolves the name once, checks every address, and connects to the first address that accepts. So a name can't switch to
 * a private address after the check. TLS verifies the name. Doesn't follow redirects.
 */
export async function postWebhook(
  deps: PostWebhookDeps,
  { url, headers, body }: { url: URL; headers: Readonly<Record<string, string>>; body: Uint8Array },
  { signal }: { signal?: AbortSignal } = {},
): Promise<void> {
  const status = await withinTimeLimit(
    deps.timeoutMs,
    async (own) => {
      const addresses = (await resolve(deps, url)).slice(0, MAX_TRIED)
      own.throwIfAborted()
      const connectMs = Math.ceil(deps.timeoutMs / addresses.length)
      return post({ ca: deps.ca, url, addresses, connectMs, headers, body, signal: own })
    },
    { createError: () => new WebhookFailure('timed_out'), signal },
  )
  if (status >= 300 && status < 400) throw new WebhookFailure('redirected')
  if (status < 200 || status >= 300) throw new WebhookFailure(`status_${status}`)
}

/** Rejects the name if any of its addresses is not allowed, because that looks like an attack. */
async function resolve({ lookup, allowsLoopback }: PostWebhookDeps, url: URL): Promise<readonly string[]> {
  const host = toHost(url)
  const addresses = isIP(host) === 0 ? await lookup(host).catch(() => []) : [host]
  if (addresses.length === 0) throw new WebhookFailure('name_unknown')
  const isAllowed = (address: string) =>
    isPublicAddress(address) ? url.protocol === 'https:' : allowsLoopback && isLoopbackAddress(address)
  if (!addresses.every(isAllowed)) throw new WebhookFailure('address_refused')
  return addresses
}

/** The host of a URL, without the brackets of an IPv6 address. */
export function toHost({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

/**
 * Resolves names with the system's resolver. Concurrent callers share one lookup per name, because each lookup blocks one of the process's
 * few threads and can't be cancelled.
 */
export function createLookup(lookupAll: Lookup = lookupInSystem): Lookup {
  const underWay = new Map<string, Promise<readonly string[]>>()
  return (hostname) => {
    const known = underWay.get(hostname)
    if (known !== undefined) return known
    const started = lookupAll(hostname).finally(() => underWay.delete(hostname))
    underWay.set(hostname, started)
    return started
  }
}

async function lookupInSystem(hostname: string): Promise<string[]> {
  return (await lookupAddresses(hostname, { all: true })).map(({ address }) => address)
}

type Post = {
  ca: string | undefined
  url: URL
  addresses: readonly string[]
  /** Limit of each connection attempt except the last, which gets the remaining time. */
  connectMs: number
  headers: Readonly<Record<string, string>>
  body: Uint8Array
  signal: AbortSignal
}

/** The status, once the answer has ended; or is longer than anybody wants to read. */
function post({ ca, url, addresses, connectMs, headers, body, signal }: Post): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(signal.reason instanceof Error ? signal.reason : new WebhookFailure('connection_failed'))
    const isHttps = url.protocol === 'https:'
    const host = toHost(url)
    // Node uses only these addresses. It tries one after the other until a connection succeeds.
    const connecting: Partial<TcpSocketConnectOpts> = {
      lookup: createAnswer(addresses),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: connectMs,
    }
    const request = (isHttps ? requestHttps : requestHttp)({
      method: 'POST',
      host,
      ...connecting,
      port: url.port === '' ? (isHttps ? 443 : 80) : url.port,
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host, 'content-length': body.length },
      // Each has its own connection, to an address that was checked for it.
      agent: false,
      signal,
      ...(isHttps && isIP(host) === 0 ? { servername: host } : {}),
      ...(ca === undefined ? {} : { ca }),
    })
    request.on('error', fail)
    request.on('response', (response) => {
      const { statusCode = 0 } = response
      let length = 0
      response.on('data', (chunk: Buffer) => {
        length += chunk.length
        if (length <= MAX_ANSWER_BYTES) return
        resolve(statusCode)
        request.destroy()
      })
      response.on('end', () => (response.complete ? resolve(statusCode) : fail()))
      response.on('error', fail)
      response.on('close', fail)
    })
    request.end(body)
  })
}

/** Returns the resolved addresses as Node's lookup function. */
function createAnswer(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, { all }, callback) => {
    if (all) callback(null, found)
    else callback(null, found[0]?.address ?? '', found[0]?.family)
  }
}

/**
 * Addresses that aren't public, from IANA's registry of special-purpose addresses (RFC 6890): this host, private, shared (CGNAT), loopback,
 * link-local, protocol assignments, documentation, 6to4 relays, benchmarks, multicast, reserved and broadcast. They include the metadata
 * services of clouds, except Azure's, which is listed too.
 */
const special: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
  ['168.63.129.16', 32],
]

/** In IPv6 only global unicast is public (RFC 4291 §2.4). It excludes mapped, translated, local and multicast addresses. */
const globalUnicast: readonly (readonly [string, number])[] = [['2000::', 3]]

/** Exceptions within it: protocol assignments with Teredo and ORCHID, 6to4, and documentation. */
const specialUnicast: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const refused4 = toList(special, 'ipv4')
const allowed6 = toList(globalUnicast, 'ipv6')
const refused6 = toList(specialUnicast, 'ipv6')
const loopback4 = toList([['127.0.0.0', 8]], 'ipv4')

/** Whether an address is public. False for other text and for addresses with a zone. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !refused4.check(address, 'ipv4')
  return (
    isIPv6(address) && !address.includes('%') && allowed6.check(address, 'ipv6') && !refused6.check(address, 'ipv6')
  )
}

/** Whether an address is loopback. */
export function isLoopbackAddress(address: string): boolean {
  return isIPv4(address) ? loopback4.check(address, 'ipv4') : address === '::1'
}

function toList(ranges: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [net, prefix] of ranges) list.addSubnet(net, prefix, family)
  return list
}
