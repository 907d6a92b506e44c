import { concatBytes } from '@countersign/protocol'
import { encodeCarHeader, encodeCarSection, encodeReceiptCar, parseBlock, ReceiptError } from '@countersign/receipt'
import type { GetBlock } from './pinner.ts'

type Bytes = Uint8Array<ArrayBuffer>

/**
 * A block as a CAR: a receipt of version 2 with all the blocks that it names, and every other block alone. Undefined where one of
 * them is not held: readers keep the answer for ever, and part of a receipt must not pass for the whole.
 */
export async function toReceiptCar(
  deps: { getBlock: GetBlock },
  cid: string,
  block: Bytes,
): Promise<Bytes | undefined> {
  const receipt = parseIf('attestation', block)
  if (receipt === undefined) return concatBytes(encodeCarHeader(cid), encodeCarSection(cid, block))
  const [release, batch, policy] = await Promise.all([
    deps.getBlock(receipt.coordinator.release),
    deps.getBlock(receipt.signer.batch),
    receipt.policy === undefined ? undefined : deps.getBlock(receipt.policy),
  ])
  const named = release && parseIf('release', release)
  if (named === undefined) return undefined
  const [coordinator, collateral] = await Promise.all([
    deps.getBlock(named.coordinator),
    deps.getBlock(named.collateral),
  ])
  if (release === undefined || batch === undefined || coordinator === undefined || collateral === undefined)
    return undefined
  if (receipt.policy !== undefined && policy === undefined) return undefined
  const blocks = { release, batch, coordinator, ...(policy && { policy }) }
  return encodeReceiptCar({ bytes: block, collateral, blocks })
}

function parseIf<Name extends 'attestation' | 'release'>(name: Name, bytes: Bytes) {
  try {
    return parseBlock(name, bytes)
  } catch (error) {
    if (error instanceof ReceiptError) return undefined
    throw error
  }
}
