import { concatBytes } from '@countersign/protocol'
import { hmacSha256 } from './hmacSha256.ts'

/*
 * Nothing here or beside it makes secret bytes with `Buffer.concat`, or with `Buffer.from` out of text: those are cut from a slab
 * that many share, and a message to another thread takes the whole slab along.
 */

const HASH_BYTES = 32

/** RFC 5869 §2.2. No salt is the same as one of 32 zero bytes. */
export function extract(salt: Uint8Array, keyMaterial: Uint8Array): Uint8Array<ArrayBuffer> {
  return hmacSha256(salt, keyMaterial)
}

/** RFC 5869 §2.3. */
export function expand(extracted: Uint8Array, info: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const expanded = new Uint8Array(length)
  let block: Uint8Array<ArrayBuffer> = new Uint8Array()
  for (let offset = 0, counter = 1; offset < length; offset += HASH_BYTES, counter++) {
    const input = concatBytes(block, info, Uint8Array.of(counter))
    block.fill(0)
    block = hmacSha256(extracted, input)
    input.fill(0)
    expanded.set(block.subarray(0, length - offset), offset)
  }
  block.fill(0)
  return expanded
}
