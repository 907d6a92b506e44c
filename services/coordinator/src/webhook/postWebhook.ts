import { lookup as lookupAddresses } from 'node:dns/promises'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP } from 'node:net'
import { withinTimeLimit } from '@countersign/protocol'
import { isLoopbackAddress, isPublicAddress } from './isPublicAddress.ts'

/** Why a receiver did not take a webhook: a code, which says nothing that the receiver wrote. */
export class WebhookFailure extends Error {
  override name = 'WebhookFailure'
  readonly code: WebhookFailureCode
  constructor(code: WebhookFailureCode) {
    super(code)
    this.code = code
  }
}

export type WebhookFailureCode =
  /** The name of the receiver leads to an address that is not public. Nothing was sent. */
  | 'address_refused'
  /** Its name has no address. */
  | 'name_unknown'
  /** No connection, no TLS, or one that ended before the answer did. */
  | 'connection_failed'
  | 'timed_out'
  /** It points elsewhere, where nothing is ever sent. */
  | 'redirected'
  /** It answered with this status. */
  | `status_${number}`

export type PostWebhookDeps = {
  /** All addresses of a name. Unset: as the system resolves it. */
  lookup?(hostname: string): Promise<readonly string[]>
  /** Only in development: receivers on this machine. */
  allowsLoopback: boolean
  timeoutMs: number
  /** Whom to believe about names; unset: the authorities of Node. */
  ca?: string
}

/** Of an answer, whose words are for nobody. */
const MAX_ANSWER_BYTES = 65_536

/**
 * Sends one webhook. The name is resolved once, each of its addresses is checked, and the connection goes to the first of them: a
 * name that means another address a moment later leads nowhere. TLS is still of the name. Redirects are not followed.
 */
export async function postWebhook(
  deps: PostWebhookDeps,
  { url, headers, body }: { url: URL; headers: Readonly<Record<string, string>>; body: Uint8Array },
  { signal }: { signal?: AbortSignal } = {},
): Promise<void> {
  const status = await withinTimeLimit(
    deps.timeoutMs,
    async (own) => {
      const address = await resolve(deps, url)
      own.throwIfAborted()
      return post({ ca: deps.ca, url, address, headers, body, signal: own })
    },
    { createError: () => new WebhookFailure('timed_out'), signal },
  )
  if (status >= 300 && status < 400) throw new WebhookFailure('redirected')
  if (status < 200 || status >= 300) throw new WebhookFailure(`status_${status}`)
}

/** One that is refused among many refuses them all: whoever answers so means no good. */
async function resolve(deps: PostWebhookDeps, url: URL): Promise<string> {
  const { lookup = lookupAll, allowsLoopback } = deps
  const host = toHost(url)
  const addresses = isIP(host) === 0 ? await lookup(host).catch(() => []) : [host]
  const [first] = addresses
  if (first === undefined) throw new WebhookFailure('name_unknown')
  const isAllowed = (address: string) =>
    isPublicAddress(address) ? url.protocol === 'https:' : allowsLoopback && isLoopbackAddress(address)
  if (!addresses.every(isAllowed)) throw new WebhookFailure('address_refused')
  return first
}

/** The host of a URL as an address would stand in it. */
export function toHost({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
}

async function lookupAll(hostname: string): Promise<string[]> {
  return (await lookupAddresses(hostname, { all: true })).map(({ address }) => address)
}

type Post = {
  ca: string | undefined
  url: URL
  address: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array
  signal: AbortSignal
}

/** The status, once the answer has ended; or is longer than anybody wants to read. */
function post({ ca, url, address, headers, body, signal }: Post): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(signal.reason instanceof Error ? signal.reason : new WebhookFailure('connection_failed'))
    const isHttps = url.protocol === 'https:'
    const host = toHost(url)
    const request = (isHttps ? requestHttps : requestHttp)({
      method: 'POST',
      host: address,
      port: url.port === '' ? (isHttps ? 443 : 80) : url.port,
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host, 'content-length': body.length },
      // Each has its own connection, to the address that was checked for it.
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
