import { peekVersion } from '../canonicalCodec.ts'
import { parseReceipt } from '../v1/canonicalBytes.ts'
import { ATTESTATION_V2, parseBlock } from './blocks.ts'
import { encodeCar, mismatch, parseCar } from './car.ts'
import type { GivenBlocks } from './checkBlocks.ts'

/** A receipt with the blocks that it needs, as `checkReceipt` takes them. */
export type ReceiptFiles = { bytes: Uint8Array; collateral?: Uint8Array; blocks: GivenBlocks }

/** All blocks of a receipt as one file: the receipt first, then what it names. */
export function encodeReceiptCar({ bytes, collateral, blocks }: ReceiptFiles): Uint8Array<ArrayBuffer> {
  const { release, coordinator, batch, policy } = blocks
  return encodeCar([bytes, release, coordinator, batch, collateral, policy].filter((block) => block !== undefined))
}

/**
 * Reads such a file. A block that nothing in it names is refused: a file is of one receipt. One that is missing is simply not
 * there, and its step says so.
 */
export function parseReceiptCar(car: Uint8Array): ReceiptFiles {
  const { root, blocks } = parseCar(car)
  const bytes = blocks.get(root) as Uint8Array
  const named = nameBlocks(bytes, blocks)
  const found = Object.values(named).filter((cid) => cid !== undefined && blocks.has(cid))
  if (new Set(found).size !== blocks.size - 1) {
    throw mismatch('a block that the receipt does not name')
  }
  const pick = <Name extends string>(name: Name, cid: string | undefined) => {
    const block = cid === undefined ? undefined : blocks.get(cid)
    return block === undefined ? {} : ({ [name]: block } as { [name in Name]: Uint8Array })
  }
  return {
    bytes,
    ...pick('collateral', named.collateral),
    blocks: {
      ...pick('release', named.release),
      ...pick('batch', named.batch),
      ...pick('coordinator', named.coordinator),
      ...pick('policy', named.policy),
    },
  }
}

/** The CIDs that a receipt names, as far as its blocks are there to be read. */
function nameBlocks(
  bytes: Uint8Array,
  blocks: ReadonlyMap<string, Uint8Array>,
): { [name in keyof GivenBlocks | 'collateral']?: string } {
  if (peekVersion(bytes) !== ATTESTATION_V2) return { collateral: parseReceipt(bytes).signer.collateral }
  const { signer, coordinator, policy } = parseBlock('attestation', bytes)
  const names = { release: coordinator.release, batch: signer.batch, ...(policy && { policy }) }
  const release = blocks.get(coordinator.release)
  if (release === undefined) return names
  const { collateral, coordinator: attested } = parseBlock('release', release)
  return { ...names, collateral, coordinator: attested }
}
