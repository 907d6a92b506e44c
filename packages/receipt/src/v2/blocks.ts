import {
  type AttestationReceiptV2,
  type BatchBlock,
  type CoordinatorBlock,
  type ReleaseBlock,
  ServiceError,
} from '@countersign/protocol'
import { type Codec, createCodec } from '../canonicalCodec.ts'
import { failIf, needs, type Transcript } from '../check/steps.ts'
import { toCid } from '../cid.ts'
import { blockSchemas } from './schema.ts'

export const ATTESTATION_V2 = 'countersign-attestation/2'

/** The blocks of a receipt of version 2 by name, without the collateral, which version 1 has too. */
export type Blocks = {
  batch: BatchBlock
  coordinator: CoordinatorBlock
  release: ReleaseBlock
  attestation: AttestationReceiptV2
}

const codecs: { [Name in keyof Blocks]: Codec<Blocks[Name]> } = {
  batch: createCodec('countersign-batch/2', 'batch block of version 2', blockSchemas.batch),
  coordinator: createCodec('countersign-coordinator/2', 'coordinator block of version 2', blockSchemas.coordinator),
  release: createCodec('countersign-release/2', 'release block of version 2', blockSchemas.release),
  attestation: createCodec(ATTESTATION_V2, 'receipt of version 2', blockSchemas.attestation),
}

/**
 * The bytes of a block, which are pinned. The CID is over them.
 *
 * @example
 * const cid = toCid(encodeBlock('batch', assembleBatch(record)))
 */
export function encodeBlock<Name extends keyof Blocks>(name: Name, block: Blocks[Name]): Uint8Array<ArrayBuffer> {
  return codecs[name].encode(block)
}

/** Parses a block from its canonical bytes. Rejects any other spelling, and other kinds of blocks. */
export function parseBlock<Name extends keyof Blocks>(name: Name, bytes: Uint8Array): Blocks[Name] {
  return codecs[name].parse(bytes)
}

/** The bytes of the blocks that a receipt or its release names. Collateral is a separate parameter, as in version 1. */
export type GivenBlocks = {
  release?: Uint8Array
  batch?: Uint8Array
  coordinator?: Uint8Array
  /** The rules of a vault, which have separate steps. */
  policy?: Uint8Array
}

/** blocks: each block matches the CID in the receipt or its release. */
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
    return [`Batch, coordinator and release match their CIDs.`, { release, batch, coordinator }]
  })
}

function readBlock<Name extends Exclude<keyof GivenBlocks, 'policy'>>(
  name: Name,
  named: string,
  given: GivenBlocks,
): Blocks[Name] {
  const bytes = needs<Uint8Array>(given[name], `the ${name} block was not given`)
  const cid = toCid(bytes)
  failIf(cid !== named, `The ${name} block has the CID ${cid}, but another is named.`)
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
