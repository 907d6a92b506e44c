import { isCid, toCid } from '@countersign/receipt'
import { describeError, VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'

/**
 * The gateway of a link to a block: `https://gateway.example` of `https://gateway.example/ipfs/bafkrei…`, and
 * `https://*.ipfs.gateway.example` of `https://bafkrei….ipfs.gateway.example/`. Undefined for anything but a web address.
 */
export function toStatedGateway(ipfsUrl: unknown): string | undefined {
  const href = parseHttpUrl(ipfsUrl)
  if (href === undefined) return undefined
  const { origin, pathname, protocol, host } = new URL(href)
  if (findSubdomainCid(host) !== undefined) return `${protocol}//*${host.slice(host.indexOf('.'))}`
  const end = pathname.lastIndexOf('/ipfs/')
  return end < 0 ? origin : `${origin}${pathname.slice(0, end)}`
}

/** The CID in a gateway's host name: `bafkrei….ipfs.gateway.example`. */
export function findSubdomainCid(host: string): string | undefined {
  const [label = '', ipfs, ...rest] = host.split('.')
  return ipfs === 'ipfs' && rest.length > 0 && isCid(label) ? label : undefined
}

/** The URL of a block at a gateway. A gateway may be named with or without `/ipfs`, or with an asterisk for the CID in its host name. */
export function toGatewayLink(gateway: string, cid: string): string {
  const base = gateway.replace(/\/+$/, '')
  if (base.includes('//*.')) return `${base.replace('*', cid)}/`
  return `${base.endsWith('/ipfs') ? base : `${base}/ipfs`}/${cid}`
}

/** An http or https URL without credentials. */
export function parseHttpUrl(value: unknown): string | undefined {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return url.username === '' && url.password === '' ? url.href : undefined
}

/** The gateways in the order of requests: the reader's, the one that a link or a proof names, and the service. */
export function orderGateways(parameters: {
  own: readonly string[]
  /** A link to a block, from a proof or the reader. */
  ipfsUrl?: string | null | undefined
  api: string | undefined
}): string[] {
  const { own, ipfsUrl, api } = parameters
  const stated = toStatedGateway(ipfsUrl)
  const all = [...own, ...(stated === undefined ? [] : [stated]), ...(api === undefined ? [] : [api])]
  return [...new Set(all.map((url) => url.replace(/\/+$/, '').replace(/\/ipfs$/, '')))]
}

export type BlockResult = { bytes: Uint8Array<ArrayBuffer> | undefined; problems: readonly string[] }

/** Requests a block from one gateway after the other, until the bytes match the CID. Other bytes are reported as a problem. */
export async function getBlock(
  { fetchBytes }: { fetchBytes: FetchBytes },
  { cid, gateways, maxBytes }: { cid: string; gateways: readonly string[]; maxBytes: number },
): Promise<BlockResult> {
  const problems: string[] = []
  for (const link of new Set(gateways.map((gateway) => toGatewayLink(gateway, cid)))) {
    const url = new URL(`${link}?format=raw`)
    try {
      const bytes = await fetchBytes({ url: url.href, maxBytes, accept: 'application/vnd.ipld.raw' })
      const received = toCid(bytes)
      if (received === cid) return { bytes, problems }
      problems.push(`${url.host} sent ${bytes.length} other bytes with the CID ${received}: truncated or changed`)
    } catch (error) {
      if (!(error instanceof VerifierError)) throw error
      problems.push(error.details ?? describeError(error).message)
    }
  }
  return { bytes: undefined, problems }
}

export type FindBlockDeps = {
  fetchBytes: FetchBytes
  /** Searches for a block next to the receipt, such as in its folder. Ignores bytes with another CID. */
  findBeside?: (cid: string) => Promise<readonly Uint8Array<ArrayBuffer>[]>
  onFetch: () => void
}

/** Gets a block from next to the receipt, or from a gateway. The CID must match. */
export async function findBlock(
  deps: FindBlockDeps,
  { cid, gateways, maxBytes }: { cid: string; gateways: readonly string[]; maxBytes: number },
): Promise<BlockResult> {
  for (const content of (await deps.findBeside?.(cid)) ?? []) {
    const bytes = [content, trimWhiteSpace(content)].find((candidate) => toCid(candidate) === cid)
    if (bytes !== undefined) return { bytes, problems: [] }
  }
  // No bytes can match an invalid CID.
  if (!isCid(cid)) return { bytes: undefined, problems: [] }
  if (gateways.length > 0) deps.onFetch()
  return getBlock(deps, { cid, gateways, maxBytes })
}

/** Removes white space of JSON at both ends, such as the line feed that editors add. */
export function trimWhiteSpace(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const isInk = (byte: number) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d
  const start = bytes.findIndex(isInk)
  return start < 0 ? new Uint8Array() : bytes.subarray(start, bytes.findLastIndex(isInk) + 1)
}
