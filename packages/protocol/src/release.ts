import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

/**
 * The message that a coordinator signs (Ed25519) when it releases a signature: it verified the quote over this leaf with this collateral
 * block,
 * its own attestation (canonical JSON), and the sample (canonical JSON). It identifies the coordinator that handled the request, even if
 * another worker assembles the receipt, and covers the values that the quote doesn't.
 */
export function toReleaseMessage(fields: Preimage<'release'>): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.release, fields)
}

/**
 * The message that a coordinator signs, with Ed25519 and with ML-DSA-65, for all signatures that it releases of one batch: it verified the
 * batch's quote with this collateral, and this is its own attestation. Each hash is the SHA-256 of a block. Each statement names its
 * coordinator.
 */
export function toReleaseMessageV2(fields: Preimage<'releaseV2'>): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.releaseV2, fields)
}
