import { isCid, toCid } from '@countersign/receipt'
import { describeError, VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import { toGatewayLink } from './gateways.ts'

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

export type FindBlockDeps = {
  fetchBytes: FetchBytes
  /** Looks for a block where the receipt came from, such as its folder. Other bytes than the CID's are passed over. */
  findBeside?: (cid: string) => Promise<readonly Uint8Array<ArrayBuffer>[]>
  onFetch: () => void
}

/** A block beside the receipt, or from a gateway. Wherever it comes from, its CID decides. */
export async function findBlock(
  deps: FindBlockDeps,
  { cid, gateways, maxBytes }: { cid: string; gateways: readonly string[]; maxBytes: number },
): Promise<FoundBlock> {
  for (const content of (await deps.findBeside?.(cid)) ?? []) {
    const bytes = [content, trimWhiteSpace(content)].find((candidate) => toCid(candidate) === cid)
    if (bytes !== undefined) return { bytes, problems: [] }
  }
  // No bytes can have such a name, so that nobody needs to be asked.
  if (!isCid(cid)) return { bytes: undefined, problems: [] }
  if (gateways.length > 0) deps.onFetch()
  return getBlock(deps, { cid, gateways, maxBytes })
}

/** Without the white space of JSON at either end, such as the line feed that editors add. */
export function trimWhiteSpace(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const isInk = (byte: number) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d
  const start = bytes.findIndex(isInk)
  return start < 0 ? new Uint8Array() : bytes.subarray(start, bytes.findLastIndex(isInk) + 1)
}
