import { toCid } from '@countersign/receipt'
import { describeError, VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import { toGatewayLink } from './toStatedGateway.ts'

export type FoundBlock = { bytes: Uint8Array<ArrayBuffer> | undefined; problems: readonly string[] }

/**
 * Asks one gateway after the other for a block. Bytes are believed by their CID alone: a gateway that sends others is reported
 * as a problem, and the next one is asked.
 */
export async function getBlock(
  { fetchBytes }: { fetchBytes: FetchBytes },
  { cid, gateways, maxBytes }: { cid: string; gateways: readonly string[]; maxBytes: number },
): Promise<FoundBlock> {
  const problems: string[] = []
  for (const link of new Set(gateways.map((gateway) => toGatewayLink(gateway, cid)))) {
    const url = new URL(`${link}?format=raw`)
    try {
      const bytes = await fetchBytes({ url: url.href, maxBytes, accept: 'application/vnd.ipld.raw' })
      const received = toCid(bytes)
      if (received === cid) return { bytes, problems }
      problems.push(`${url.host} sent ${bytes.length} other bytes, with the CID ${received}: cut short or changed`)
    } catch (error) {
      if (!(error instanceof VerifierError)) throw error
      problems.push(error.details ?? describeError(error).message)
    }
  }
  return { bytes: undefined, problems }
}
