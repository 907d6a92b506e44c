import { type Hex, type Signed, toEventHash } from '@countersign/protocol'

/** By which the same is found again: null for what is signed off the chain, which never is. */
export function toDigest(signed: Signed): Hex | null {
  switch (signed.kind) {
    case 'transaction':
      return signed.subject.digestSigned
    case 'authorization':
      return signed.subject.digest
    case 'address':
      return toEventHash(signed)
    case 'off-chain':
      return null
  }
}
