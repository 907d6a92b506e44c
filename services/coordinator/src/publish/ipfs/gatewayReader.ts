import { exchange, type Fetch, toBlockBytes, toServiceUrl } from './exchange.ts'
import { assertCid, PinError } from './pinError.ts'
import type { ReadBlock } from './pinner.ts'

/**
 * Reads blocks from a trustless gateway (specs.ipfs.tech/http-gateways/trustless-gateway), which needs no trust, since they are hashed
 * here, and gets no token.
 *
 * @example
 * const readBlock = createGatewayReader({ gatewayUrl: 'https://ipfs.example', fetch })
 */
export function createGatewayReader({ gatewayUrl, fetch }: { gatewayUrl: string; fetch: Fetch }): ReadBlock {
  const gateway = toServiceUrl(gatewayUrl)
  return async (cid, { signal }) => {
    assertCid(cid)
    const url = `${gateway}/ipfs/${cid}?format=raw`
    const init = { headers: { accept: 'application/vnd.ipld.raw' } }
    const answer = await exchange({ fetch }, { step: 'gateway', url, init, signal })
    const isMissing = answer.status === 404 || answer.status === 410
    if (isMissing) throw new PinError('pin_not_found', { details: `gateway: ${answer.status}` })
    return toBlockBytes(cid, answer)
  }
}
