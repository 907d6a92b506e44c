import { parseHttpUrl } from './trust.ts'

/** Where blocks are asked for, in order: what the site is set to, what the proof names, the service itself. */
export function toGateways(parameters: {
  apiBaseUrl: string
  ipfsGatewayUrl?: string
  ipfsUrl?: string | null
}): string[] {
  const { apiBaseUrl, ipfsGatewayUrl, ipfsUrl } = parameters
  const set = ipfsGatewayUrl === undefined ? [] : [ipfsGatewayUrl.replace(/\/+$/, '').replace(/\/ipfs$/, '')]
  const named = toGateway(ipfsUrl)
  return [...new Set([...set, ...(named === undefined ? [] : [named]), apiBaseUrl.replace(/\/+$/, '')])]
}

/** `https://gateway.example/ipfs/bafkrei…` is of the gateway `https://gateway.example`. */
function toGateway(ipfsUrl: string | null | undefined): string | undefined {
  const href = parseHttpUrl(ipfsUrl)
  if (href === undefined) return undefined
  const { origin, pathname } = new URL(href)
  const end = pathname.lastIndexOf('/ipfs/')
  return end < 0 ? origin : `${origin}${pathname.slice(0, end)}`
}
