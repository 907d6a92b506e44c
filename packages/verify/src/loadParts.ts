import { parseCollateral } from '@countersign/attestation'
import { type AttestationReceiptV2, MAX_BLOCK_BYTES, ServiceError } from '@countersign/protocol'
import {
  type AnyReceipt,
  ATTESTATION_V2,
  type GivenBlocks,
  MAX_COLLATERAL_BYTES,
  parseBlock,
  toCid,
} from '@countersign/receipt'
import { VerifierError, withSource } from './errors.ts'
import { type FindBlockDeps, findBlock, trimWhiteSpace } from './getBlock.ts'

/** A file that the reader gives as collateral. */
export type GivenFile = { name: string; bytes: Uint8Array<ArrayBuffer> }

export type CollateralFile = GivenFile & { cid: string }

/** What a receipt names, as far as it is to be had. */
export type LoadedParts = {
  /** Of version 2. */
  blocks: GivenBlocks
  /** `name` is that of the file that it came from. */
  collateral: { bytes: Uint8Array<ArrayBuffer>; name: string | undefined } | undefined
  /** The collateral of another time, by which the evidence is to be judged again. */
  fresh: CollateralFile | undefined
  /** What could not be fetched, and why. */
  problems: readonly string[]
}

export type LoadPartsParameters = {
  receipt: AnyReceipt | undefined
  /** The reader's own. */
  files: readonly CollateralFile[]
  gateways: readonly string[]
  at: Date | undefined
}

/**
 * The blocks that a receipt names, and its collateral: among the reader's files, beside the receipt, or from a gateway. Wherever they
 * come from, their CIDs decide. A receipt of version 1 is one block, and names its collateral itself.
 */
export async function loadParts(
  deps: Omit<FindBlockDeps, 'onFetch'> & { onPhase: (phase: 'blocks' | 'collateral') => void },
  { receipt, files, gateways, at }: LoadPartsParameters,
): Promise<LoadedParts> {
  const { blocks, cid, problems } =
    receipt?.version === ATTESTATION_V2
      ? await loadBlocks({ ...deps, onFetch: () => deps.onPhase('blocks') }, { receipt, gateways })
      : { blocks: {}, cid: receipt?.signer.collateral, problems: [] }
  if (cid === undefined) return { blocks, collateral: undefined, fresh: undefined, problems }
  const fresh = chooseFreshCollateral(files, { cid, at })
  const given = files.find((file) => file.cid === cid)
  if (given !== undefined) return { blocks, collateral: given, fresh, problems }
  const parameters = { cid, gateways, maxBytes: MAX_COLLATERAL_BYTES }
  const found = await findBlock({ ...deps, onFetch: () => deps.onPhase('collateral') }, parameters)
  const collateral = found.bytes && { bytes: found.bytes, name: undefined }
  return { blocks, collateral, fresh, problems: [...new Set([...problems, ...found.problems])] }
}

/**
 * Release, batch and a vault's policy, and through the release the coordinator. One that is not to be had is left out, and its step
 * says so; one that its CID names and that is malformed is handed on, for the step to fail. `cid` is that of the collateral, once the
 * release is there to name it.
 */
async function loadBlocks(
  deps: FindBlockDeps,
  { receipt, gateways }: { receipt: AttestationReceiptV2; gateways: readonly string[] },
) {
  const problems: string[] = []
  const load = async (name: keyof GivenBlocks, cid: string | undefined) => {
    if (cid === undefined) return {}
    const found = await findBlock(deps, { cid, gateways, maxBytes: MAX_BLOCK_BYTES })
    problems.push(...found.problems.map((problem) => `the ${name} block: ${problem}`))
    return found.bytes && { [name]: found.bytes }
  }
  const [release, batch, policy]: (GivenBlocks | undefined)[] = await Promise.all([
    load('release', receipt.coordinator.release),
    load('batch', receipt.signer.batch),
    load('policy', receipt.policy),
  ])
  const named = release?.release && readRelease(release.release)
  const coordinator = await load('coordinator', named?.coordinator)
  const blocks: GivenBlocks = { ...release, ...batch, ...coordinator, ...policy }
  return { blocks, cid: named?.collateral, problems: [...new Set(problems)] }
}

function readRelease(bytes: Uint8Array) {
  try {
    return parseBlock('release', bytes)
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

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

/** Files that are neither this nor the receipt's own are a mistake: the reader would believe that they had been used. */
function chooseFreshCollateral(
  files: readonly CollateralFile[],
  { cid, at }: { cid: string; at: Date | undefined },
): CollateralFile | undefined {
  const [fresh, second] = files.filter((file) => file.cid !== cid)
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
