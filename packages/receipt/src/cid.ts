import { toHex } from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { create as createDigest } from 'multiformats/hashes/digest'

const SHA2_256 = 0x12

/** The CID of a block: version 1, codec raw, SHA-256, in base32. Always computed here. CIDs from a service are compared with it. */
export function toCid(block: Uint8Array): string {
  return fromCidHash(sha256(block))
}

/** The CID with a SHA-256. */
export function fromCidHash(hash: Uint8Array): string {
  return CID.createV1(raw.code, createDigest(SHA2_256, hash)).toString()
}

/** Whether a text is a canonical CID of the only kind in this project. */
export function isCid(text: string): boolean {
  return toCidHash(text) !== undefined
}

/** The SHA-256 in such a CID, in hex. */
export function toCidHash(text: string): string | undefined {
  if (!/^b[a-z2-7]{58}$/.test(text)) return undefined
  try {
    const cid = CID.parse(text)
    const isOurs = cid.version === 1 && cid.code === raw.code && cid.multihash.code === SHA2_256
    return isOurs && cid.multihash.digest.length === 32 && cid.toString() === text
      ? toHex(cid.multihash.digest)
      : undefined
  } catch {
    return undefined
  }
}
