import { hmacSha256 } from './hmacSha256.ts'

/** RFC 5869 §2.2. No salt is the same as one of 32 zero bytes. */
export function extract(salt: Uint8Array, keyMaterial: Uint8Array): Buffer {
  return hmacSha256(salt, keyMaterial)
}

/** RFC 5869 §2.3. */
export function expand(extracted: Uint8Array, info: Uint8Array, length: number): Buffer {
  const blocks: Buffer[] = []
  let block = Buffer.alloc(0)
  for (let counter = 1; 32 * blocks.length < length; counter++) {
    block = hmacSha256(extracted, Buffer.concat([block, info, Uint8Array.of(counter)]))
    blocks.push(block)
  }
  return Buffer.concat(blocks).subarray(0, length)
}
