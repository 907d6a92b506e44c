import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

/**
 * What a coordinator signs (Ed25519) when it commits a signature: that it verified the quote over this leaf with this
 * collateral block, while attested like this (canonical JSON, as it stood), and with this witness (canonical JSON, as it came). It names the
 * coordinator that handled the request, whichever worker assembles the receipt, and covers what the quote does not.
 */
export function toReleaseMessage(fields: Preimage<'release'>): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.release, fields)
}

/**
 * What a coordinator signs, with Ed25519 and with ML-DSA-65, for all that it releases of one batch: that it verified the batch's
 * quote with this collateral, while attested like this. Each hash is SHA-256 of the block. Which statements are its own they say themselves.
 */
export function toReleaseMessageV2(fields: Preimage<'releaseV2'>): Uint8Array<ArrayBuffer> {
  return toPreimage(preimages.releaseV2, fields)
}
