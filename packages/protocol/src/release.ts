import { concatBytes } from './bytes.ts'
import { toField } from './fields.ts'
import { tags, toTagBytes } from './tags.ts'

export type ReleaseMessageParameters = {
  /** 32 bytes: the leaf of the statement that is released. */
  leaf: Uint8Array
  /** 32 bytes: SHA-256 of the collateral block that the quote was verified with. */
  collateralHash: Uint8Array
  /** 32 bytes: SHA-256 of the canonical JSON of the coordinator's attestation of itself, as it stood. */
  selfAttestationHash: Uint8Array
  /** 32 bytes: SHA-256 of the canonical JSON of the entropy witness, as it came. */
  witnessHash: Uint8Array
}

/**
 * What a coordinator signs (Ed25519) when it commits a signature: that it verified the quote over this leaf with this
 * collateral, while attested like this, and with this witness. It names the coordinator that handled the request, whichever
 * worker assembles the receipt, and covers what the quote does not.
 */
export function toReleaseMessage(parameters: ReleaseMessageParameters): Uint8Array<ArrayBuffer> {
  const { leaf, collateralHash, selfAttestationHash, witnessHash } = parameters
  return concatBytes(
    toTagBytes(tags.release),
    toField('leaf', leaf, 32),
    toField('collateralHash', collateralHash, 32),
    toField('selfAttestationHash', selfAttestationHash, 32),
    toField('witnessHash', witnessHash, 32),
  )
}

export type ReleaseMessageV2Parameters = {
  /** 32 bytes: SHA-256 of the batch block. */
  batchHash: Uint8Array
  /** 32 bytes: SHA-256 of the collateral block that the batch's quote was verified with. */
  collateralHash: Uint8Array
  /** 32 bytes: SHA-256 of the block with the coordinator's attestation of its keys. */
  coordinatorHash: Uint8Array
}

/**
 * What a coordinator signs, with Ed25519 and with ML-DSA-65, for all that it releases of one batch: that it verified the batch's
 * quote with this collateral, while attested like this. Which statements are its own they say themselves.
 */
export function toReleaseMessageV2(parameters: ReleaseMessageV2Parameters): Uint8Array<ArrayBuffer> {
  const { batchHash, collateralHash, coordinatorHash } = parameters
  return concatBytes(
    toTagBytes(tags.releaseV2),
    toField('batchHash', batchHash, 32),
    toField('collateralHash', collateralHash, 32),
    toField('coordinatorHash', coordinatorHash, 32),
  )
}
