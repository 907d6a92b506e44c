import { join } from 'node:path'
import { parseCollateral } from '@countersign/attestation'
import { toCid } from '@countersign/receipt'
import { about, VerifierError } from './errors.ts'
import type { FetchDeps } from './fetchBytes.ts'
import { type FoundBlock, getBlock } from './getBlock.ts'
import { isPathTaken, readFileBounded } from './readFileBounded.ts'
import { trimWhiteSpace } from './trimWhiteSpace.ts'

export const MAX_COLLATERAL_BYTES = 8_388_608

export type CollateralFile = { path: string; bytes: Uint8Array<ArrayBuffer>; cid: string }

/**
 * Reads a file that the reader says is collateral, and refuses what is none. White space around it is left out: no block of
 * collateral has any, and what remains still has to have the right CID.
 */
export async function readCollateralFile(path: string): Promise<CollateralFile> {
  const content = await readFileBounded(path, { maxBytes: MAX_COLLATERAL_BYTES })
  // Of a file that is too large not all was read, so that its end is not its end.
  const bytes = content.length > MAX_COLLATERAL_BYTES ? content : trimWhiteSpace(content)
  about(path, () => parseCollateral(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)))
  return { path, bytes, cid: toCid(bytes) }
}

/**
 * The collateral that a receipt names: among the reader's files, beside the receipt, or from a gateway. Wherever it comes
 * from, its CID decides.
 */
export async function loadCollateral(
  deps: FetchDeps,
  parameters: {
    cid: string
    files: readonly CollateralFile[]
    folder: string | undefined
    gateways: readonly string[]
    isOffline: boolean
  },
): Promise<FoundBlock> {
  const { cid, files, folder, gateways, isOffline } = parameters
  const given = files.find((file) => file.cid === cid)
  if (given !== undefined) return { bytes: given.bytes, problems: [] }
  for (const name of folder === undefined ? [] : [cid, `${cid}.json`, 'collateral.json']) {
    const content = await readNeighbour(join(folder ?? '', name))
    if (content === undefined) continue
    const bytes = [content, trimWhiteSpace(content)].find((candidate) => toCid(candidate) === cid)
    if (bytes !== undefined) return { bytes, problems: [] }
  }
  if (isOffline) return { bytes: undefined, problems: [] }
  return getBlock(deps, { cid, gateways, maxBytes: MAX_COLLATERAL_BYTES })
}

/** Nobody asked for this file, so one that cannot be read is one that is not there. */
async function readNeighbour(path: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (!(await isPathTaken(path))) return undefined
  try {
    return await readFileBounded(path, { maxBytes: MAX_COLLATERAL_BYTES })
  } catch (error) {
    if (error instanceof VerifierError) return undefined
    throw error
  }
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
      details: `${fresh.path} has the CID ${fresh.cid}, the receipt names ${cid}; other collateral is used only with --at`,
    })
  }
  if (fresh === undefined) {
    throw new VerifierError('invalid_arguments', '--at needs the collateral of that time', {
      details: 'give it with --collateral, beside or instead of the one that the receipt names',
    })
  }
  if (second !== undefined) {
    throw new VerifierError('collateral_not_named', 'more than one collateral for --at', {
      details: `${fresh.path} and ${second.path}`,
    })
  }
  return fresh
}
