import { orderGateways } from '@countersign/verify'

/** Where blocks are asked for, in order; the site's gateway stands for the reader's own. */
export function toGateways(parameters: {
  apiBaseUrl: string
  ipfsGatewayUrl?: string
  ipfsUrl?: string | null
}): string[] {
  const { apiBaseUrl, ipfsGatewayUrl, ipfsUrl } = parameters
  return orderGateways({ own: ipfsGatewayUrl === undefined ? [] : [ipfsGatewayUrl], ipfsUrl, api: apiBaseUrl })
}
