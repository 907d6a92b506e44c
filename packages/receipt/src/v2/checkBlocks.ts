import { type AttestationReceiptV2, ServiceError } from '@countersign/protocol'
import { failIf, needs, type Transcript } from '../check/transcript.ts'
import { toCid } from '../cid.ts'
import { type Blocks, parseBlock } from './blocks.ts'

/** The bytes of the blocks that a receipt names, directly or through its release. Collateral is given apart, as for version 1. */
export type GivenBlocks = {
  release?: Uint8Array
  batch?: Uint8Array
  coordinator?: Uint8Array
  /** The rules of a vault, which has steps of its own. */
  policy?: Uint8Array
}

/** blocks: each is the one that the receipt, or its release, names by CID. */
export async function checkBlocks(
  { run }: Transcript,
  receipt: AttestationReceiptV2,
  given: GivenBlocks,
): Promise<Omit<Blocks, 'attestation'> | undefined> {
  return run('blocks', () => {
    const release = readBlock('release', receipt.coordinator.release, given)
    failIf(release.batch !== receipt.signer.batch, 'The release is for another batch than the receipt’s.')
    const batch = readBlock('batch', receipt.signer.batch, given)
    const coordinator = readBlock('coordinator', release.coordinator, given)
    return [`Batch, coordinator and release are the blocks named.`, { release, batch, coordinator }]
  })
}

function readBlock<Name extends Exclude<keyof GivenBlocks, 'policy'>>(
  name: Name,
  named: string,
  given: GivenBlocks,
): Blocks[Name] {
  const bytes = needs<Uint8Array>(given[name], `the ${name} block was not given`)
  const cid = toCid(bytes)
  failIf(cid !== named, `The ${name} block has the CID ${cid}, another is named.`)
  try {
    return parseBlock(name, bytes)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw new ServiceError(error.code, error.message, {
      details: `${name}: ${error.details ?? 'refused'}`,
      cause: error,
    })
  }
}
