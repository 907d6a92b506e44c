import { isCid } from '@countersign/receipt'

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

/** The CID that a gateway has in front of its name: `bafkrei….ipfs.gateway.example`. */
export function findSubdomainCid(host: string): string | undefined {
  const [label = '', ipfs, ...rest] = host.split('.')
  return ipfs === 'ipfs' && rest.length > 0 && isCid(label) ? label : undefined
}

/**
 * Where a gateway has a block. A gateway may be named with or without its `/ipfs`; one that gives each CID a name of its own has an
 * asterisk in its place.
 */
export function toGatewayLink(gateway: string, cid: string): string {
  const base = gateway.replace(/\/+$/, '')
  if (base.includes('//*.')) return `${base.replace('*', cid)}/`
  return `${base.endsWith('/ipfs') ? base : `${base}/ipfs`}/${cid}`
}

/** An address on the web, without credentials, that may be asked or shown as a link. */
export function parseHttpUrl(value: unknown): string | undefined {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) return undefined
  return url.username === '' && url.password === '' ? url.href : undefined
}

/** Where blocks are asked for, in order: the reader's own gateways, the one that a link or a proof names, the service itself. */
export function orderGateways(parameters: {
  own: readonly string[]
  /** A link to a block, of a proof or of the reader. */
  ipfsUrl?: string | null | undefined
  api: string | undefined
}): string[] {
  const { own, ipfsUrl, api } = parameters
  const stated = toStatedGateway(ipfsUrl)
  const all = [...own, ...(stated === undefined ? [] : [stated]), ...(api === undefined ? [] : [api])]
  return [...new Set(all.map((url) => url.replace(/\/+$/, '').replace(/\/ipfs$/, '')))]
}
