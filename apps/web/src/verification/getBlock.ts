import { toCid } from '@countersign/receipt'
import { type FetchBytes, FetchError } from './fetchBytes.ts'

export type FoundBlock = { bytes: Uint8Array<ArrayBuffer> | undefined; problems: readonly string[] }

/**
 * Asks one gateway after the other for a block. Bytes are believed by their CID alone: a gateway that sends others is a
 * problem to tell, and the next one is asked.
 */
export async function getBlock(
  { fetchBytes }: { fetchBytes: FetchBytes },
  { cid, gateways, maxBytes }: { cid: string; gateways: readonly string[]; maxBytes: number },
): Promise<FoundBlock> {
  const problems: string[] = []
  for (const gateway of new Set(gateways)) {
    const url = new URL(`${gateway}/ipfs/${cid}?format=raw`)
    try {
      const bytes = await fetchBytes({ url: url.href, maxBytes, accept: 'application/vnd.ipld.raw' })
      const received = toCid(bytes)
      if (received === cid) return { bytes, problems }
      problems.push(`${url.host} sent ${bytes.length} other bytes, with the CID ${received}: cut short or changed`)
    } catch (error) {
      if (!(error instanceof FetchError)) throw error
      problems.push(error.message)
    }
  }
  return { bytes: undefined, problems }
}
