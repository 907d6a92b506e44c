import { isCid, toCid } from '@countersign/receipt'
import type { FetchBytes } from './fetchBytes.ts'
import { type FoundBlock, getBlock } from './getBlock.ts'
import { trimWhiteSpace } from './trimWhiteSpace.ts'

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
