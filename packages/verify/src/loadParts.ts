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

/** A file that the user passes as collateral. */
export type GivenFile = { name: string; bytes: Uint8Array<ArrayBuffer> }

export type CollateralFile = GivenFile & { cid: string }

/** The blocks and collateral of a receipt that could be loaded. */
export type LoadedParts = {
  /** Only for receipts of version 2. */
  blocks: GivenBlocks
  /** `name` is the user's file, if it came from one. */
  collateral: { bytes: Uint8Array<ArrayBuffer>; name: string | undefined } | undefined
  /** Collateral of another time, for the second evaluation. */
  fresh: CollateralFile | undefined
  /** The parts that could not be fetched, with the reason. */
  problems: readonly string[]
}

export type LoadPartsParameters = {
  receipt: AnyReceipt | undefined
  /** The user's collateral files. */
  files: readonly CollateralFile[]
  gateways: readonly string[]
  at: Date | undefined
}

/**
 * Loads the blocks that a receipt names, and its collateral: from the user's files, from next to the receipt, or from a gateway. Their CIDs
 * must match in every case. A receipt of version 1 is a single block that names its collateral itself.
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
 * Loads the release, the batch, a vault's policy, and the coordinator block that the release names. A block that can't be loaded is left
 * out, and its verification step reports that. A malformed block with the right CID is returned, so that its step fails. `cid` is the
 * collateral's; without the release it is unknown.
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
 * Throws if the file is not collateral. Removes white space around it: blocks of collateral have none, and the CID of the rest is
 * still checked.
 */
export function parseCollateralFile({ name, bytes: content }: GivenFile): CollateralFile {
  // A file that is too large was read only in part, so its last bytes aren't the file's end.
  const bytes = content.length > MAX_COLLATERAL_BYTES ? content : trimWhiteSpace(content)
  withSource(name, () => parseCollateral(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)))
  return { name, bytes, cid: toCid(bytes) }
}

/** Throws for files that would not be used. Otherwise the user would believe that they were. */
function chooseFreshCollateral(
  files: readonly CollateralFile[],
  { cid, at }: { cid: string; at: Date | undefined },
): CollateralFile | undefined {
  const [fresh, second] = files.filter((file) => file.cid !== cid)
  if (at === undefined) {
    if (fresh === undefined) return undefined
    throw new VerifierError('collateral_not_named', 'not the collateral of this receipt', {
      details: `${fresh.name} has the CID ${fresh.cid}, the receipt names ${cid}; other collateral is only used to evaluate the evidence at another time`,
      need: 'time',
    })
  }
  if (fresh === undefined) {
    throw new VerifierError('invalid_arguments', 'an evaluation at another time needs the collateral of that time', {
      details: 'provide it in addition to the receipt’s collateral, or instead of it',
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
