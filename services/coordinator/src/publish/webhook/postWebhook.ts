import { lookup as lookupAddresses } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction, type TcpSocketConnectOpts } from 'node:net'
import { withinTimeLimit } from '@countersign/protocol'

/** Why a receiver did not take a webhook: a code, which says nothing that the receiver wrote. */
export class WebhookFailure extends Error {
  override name = 'WebhookFailure'
  readonly code: WebhookFailureCode
  constructor(code: WebhookFailureCode) {
    super(code)
    this.code = code
  }
}

type WebhookFailureCode =
  /** The name of the receiver leads to an address that is not public. Nothing was sent. */
  | 'address_refused'
  | 'name_unknown'
  /** No connection, no TLS, or one that ended before the answer did. */
  | 'connection_failed'
  | 'timed_out'
  /** It points elsewhere, where nothing is ever sent. */
  | 'redirected'
  | `status_${number}`

type Lookup = (hostname: string) => Promise<readonly string[]>

export type PostWebhookDeps = {
  /** All addresses of a name, as `createLookup` finds them. */
  lookup: Lookup
  /** Only in development: receivers on this machine. */
  allowsLoopback: boolean
  timeoutMs: number
  /** Whom to believe about names; unset: the authorities of Node. */
  ca?: string
}

/** Of an answer, whose words are for nobody. */
const MAX_ANSWER_BYTES = 65_536
/** Of those that a name has. */
const MAX_TRIED = 4

/**
 * Sends one webhook. The name is resolved once, each of its addresses is checked, and the connection goes to the first of them that
 * takes it: a name that means another address a moment later leads nowhere. TLS is still of the name. Redirects are not followed.
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

/** One that is refused among many refuses them all: whoever answers so means no good. */
async function resolve({ lookup, allowsLoopback }: PostWebhookDeps, url: URL): Promise<readonly string[]> {
  const host = toHost(url)
  const addresses = isIP(host) === 0 ? await lookup(host).catch(() => []) : [host]
  if (addresses.length === 0) throw new WebhookFailure('name_unknown')
  const isAllowed = (address: string) =>
    isPublicAddress(address) ? url.protocol === 'https:' : allowsLoopback && isLoopbackAddress(address)
  if (!addresses.every(isAllowed)) throw new WebhookFailure('address_refused')
  return addresses
}

/** The host of a URL as an address would stand in it. */
export function toHost({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

/**
 * As the system resolves names, each name once at a time: who asks meanwhile, or asks again after a time limit, gets the same answer.
 * A lookup holds one of the few threads that all lookups of the process share, and nothing ends it early.
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
  /** For the connection to each of them but the last, which has the time that is left. */
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
    // Node asks nobody else for the addresses, and tries one after the other until one takes the connection.
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

/** What is known already, in the form in which Node asks for it. */
function createAnswer(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_hostname, { all }, callback) => {
    if (all) callback(null, found)
    else callback(null, found[0]?.address ?? '', found[0]?.family)
  }
}

/**
 * What is not on the internet, by IANA's registry of special-purpose addresses (RFC 6890): this host, private, shared (CGNAT), loopback,
 * link-local, protocol assignments, documentation, 6to4 relays, benchmarks, multicast, reserved and broadcast. Services that tell a
 * machine its secrets are among them, save Azure's, whose address is a public one.
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

/** Of IPv6 only global unicast is public (RFC 4291 §2.4): mapped, translated, local and multicast addresses are all outside of it. */
const globalUnicast: readonly (readonly [string, number])[] = [['2000::', 3]]

/** Inside of it: protocol assignments with Teredo and ORCHID, 6to4, which carry an IPv4 address, and documentation. */
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

/** Whether an address is one of the public internet. What is no address, or has a zone, is not. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !refused4.check(address, 'ipv4')
  return (
    isIPv6(address) && !address.includes('%') && allowed6.check(address, 'ipv6') && !refused6.check(address, 'ipv6')
  )
}

/** Whether an address is this machine itself. */
export function isLoopbackAddress(address: string): boolean {
  return isIPv4(address) ? loopback4.check(address, 'ipv4') : address === '::1'
}

function toList(ranges: readonly (readonly [string, number])[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const [net, prefix] of ranges) list.addSubnet(net, prefix, family)
  return list
}
