import { toStatedGateway } from './toStatedGateway.ts'

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
