import { parseCollateral } from '@countersign/attestation'
import { MAX_COLLATERAL_BYTES, toCid } from '@countersign/receipt'
import { VerifierError, withSource } from './errors.ts'
import { type FindBlockDeps, type FoundBlock, findBlock, trimWhiteSpace } from './getBlock.ts'

/** A file that the reader gives as collateral. */
export type GivenFile = { name: string; bytes: Uint8Array<ArrayBuffer> }

export type CollateralFile = GivenFile & { cid: string }

/**
 * Refuses what is no collateral. White space around it is left out: no block of collateral has any, and what remains still
 * has to have the right CID.
 */
export function parseCollateralFile({ name, bytes: content }: GivenFile): CollateralFile {
  // Of a file that is too large not all was read, so that its end is not its end.
  const bytes = content.length > MAX_COLLATERAL_BYTES ? content : trimWhiteSpace(content)
  withSource(name, () => parseCollateral(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)))
  return { name, bytes, cid: toCid(bytes) }
}

export type LoadedCollateral = FoundBlock & {
  /** Of the file that it came from. */
  name?: string
}

/**
 * The collateral that a receipt names: among the reader's files, beside the receipt, or from a gateway. Wherever it comes
 * from, its CID decides.
 */
export async function loadCollateral(
  deps: FindBlockDeps,
  { cid, files, gateways }: { cid: string; files: readonly CollateralFile[]; gateways: readonly string[] },
): Promise<LoadedCollateral> {
  const given = files.find((file) => file.cid === cid)
  if (given !== undefined) return { bytes: given.bytes, name: given.name, problems: [] }
  return findBlock(deps, { cid, gateways, maxBytes: MAX_COLLATERAL_BYTES })
}

/**
 * The collateral of another time, by which the evidence is to be judged again. Files that are neither this nor the
 * receipt's own are a mistake: the reader would believe that they had been used.
 */
export function chooseFreshCollateral(
  files: readonly CollateralFile[],
  { cid, at }: { cid: string; at: Date | undefined },
): CollateralFile | undefined {
  const others = files.filter((file) => file.cid !== cid)
  const [fresh, second] = others
  if (at === undefined) {
    if (fresh === undefined) return undefined
    throw new VerifierError('collateral_not_named', 'not the collateral of this receipt', {
      details: `${fresh.name} has the CID ${fresh.cid}, the receipt names ${cid}; other collateral is used only to judge again, at another time`,
      need: 'time',
    })
  }
  if (fresh === undefined) {
    throw new VerifierError('invalid_arguments', 'judging again needs the collateral of that time', {
      details: 'give it beside or instead of the one that the receipt names',
      need: 'collateral-of-time',
    })
  }
  if (second !== undefined) {
    throw new VerifierError('collateral_not_named', 'more than one collateral for one time', {
      details: `${fresh.name} and ${second.name}`,
      need: 'one-collateral',
    })
  }
  return fresh
}
