import { hash } from 'node:crypto'
import { concatBytes } from '@countersign/protocol/core'

/*
 * Code in this folder never creates secret bytes with `Buffer.concat`, or with `Buffer.from` from text. Those share a memory pool, and a
 * message
 * to another thread would include the whole pool.
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

const BLOCK_BYTES = 64

/**
 * HMAC-SHA-256 (RFC 2104) with two one-shot hashes. `createHmac` creates a key object and a stream for each call, which is measurably slow
 * for
 * keys derived for every signature.
 */
export function hmacSha256(key: Uint8Array, data: Uint8Array): Buffer<ArrayBuffer> {
  if (key.length > BLOCK_BYTES) throw new RangeError('keys here are at most one block long')
  const inner = Buffer.alloc(BLOCK_BYTES + data.length, 0x36)
  const outer = Buffer.alloc(BLOCK_BYTES + 32, 0x5c)
  for (let index = 0; index < key.length; index++) {
    const byte = key[index] ?? 0
    inner[index] = byte ^ 0x36
    outer[index] = byte ^ 0x5c
  }
  inner.set(data, BLOCK_BYTES)
  const digest = hash('sha256', inner, 'buffer')
  outer.set(digest, BLOCK_BYTES)
  const mac = hash('sha256', outer, 'buffer') as Buffer<ArrayBuffer>
  digest.fill(0)
  inner.fill(0)
  outer.fill(0)
  return mac
}
