import { hash } from 'node:crypto'

const BLOCK_BYTES = 64

/**
 * HMAC-SHA-256 (RFC 2104) out of two one-shot hashes. `createHmac` makes a key object and a stream for each call, which
 * showed in the profile where keys are derived for every signature.
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
