import { toStatedGateway } from '@countersign/verify'

/** Where blocks are asked for, in order: what the site is set to, what the proof names, the service itself. */
export function toGateways(parameters: {
  apiBaseUrl: string
  ipfsGatewayUrl?: string
  ipfsUrl?: string | null
}): string[] {
  const { apiBaseUrl, ipfsGatewayUrl, ipfsUrl } = parameters
  const set = ipfsGatewayUrl === undefined ? [] : [ipfsGatewayUrl.replace(/\/+$/, '').replace(/\/ipfs$/, '')]
  const named = toStatedGateway(ipfsUrl)
  return [...new Set([...set, ...(named === undefined ? [] : [named]), apiBaseUrl.replace(/\/+$/, '')])]
}
