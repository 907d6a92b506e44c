import type { AttestationReceiptV2, BatchBlock, CoordinatorBlock, ReleaseBlock } from '@countersign/protocol'
import { createCodec } from '../canonicalCodec.ts'
import { blockSchemas } from './schema.ts'

export const ATTESTATION_V2 = 'countersign-attestation/2'

/** The blocks of a receipt of version 2 by name. Collateral is one more, as version 1 has it. */
export type Blocks = {
  batch: BatchBlock
  coordinator: CoordinatorBlock
  release: ReleaseBlock
  attestation: AttestationReceiptV2
}

const codecs = {
  batch: createCodec<BatchBlock>({
    version: 'countersign-batch/2',
    title: 'batch block of version 2',
    schema: blockSchemas.batch,
  }),
  coordinator: createCodec<CoordinatorBlock>({
    version: 'countersign-coordinator/2',
    title: 'coordinator block of version 2',
    schema: blockSchemas.coordinator,
  }),
  release: createCodec<ReleaseBlock>({
    version: 'countersign-release/2',
    title: 'release block of version 2',
    schema: blockSchemas.release,
  }),
  attestation: createCodec<AttestationReceiptV2>({
    version: ATTESTATION_V2,
    title: 'receipt of version 2',
    schema: blockSchemas.attestation,
  }),
}

/**
 * The bytes of a block: what is pinned, and what its CID names.
 *
 * @example
 * const cid = toCid(encodeBlock('batch', assembleBatch(record)))
 */
export function encodeBlock<Name extends keyof Blocks>(name: Name, block: Blocks[Name]): Uint8Array<ArrayBuffer> {
  const encode: (block: Blocks[Name]) => Uint8Array<ArrayBuffer> = codecs[name].encode as never
  return encode(block)
}

/** Reads a block from its canonical bytes; every other spelling, and every other kind of block, is refused. */
export function parseBlock<Name extends keyof Blocks>(name: Name, bytes: Uint8Array): Blocks[Name] {
  return codecs[name].parse(bytes) as Blocks[Name]
}
