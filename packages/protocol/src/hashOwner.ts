import { sha256 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import { fromHex } from './hex.ts'
import type { OwnerOpening } from './owner.ts'
import * as preimages from './preimages.ts'
import { toPreimage } from './tags.ts'

/** The commitment to the owner of an address, 32 bytes. Apart from the schema, so that a page loads the schema without the hash. */
export function hashOwner({ salt, identity }: OwnerOpening): Uint8Array<ArrayBuffer> {
  return sha256(toPreimage(preimages.owner, { salt: fromHex(salt), identity: toCanonicalJson(identity) }))
}
