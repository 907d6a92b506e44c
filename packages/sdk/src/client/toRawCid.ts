import { sha256, toBytes } from 'viem'

/** CIDv1, codec raw, sha2-256, in base32: the name of a block on IPFS. */
export function toRawCid(bytes: Uint8Array): string {
  return `b${toBase32(Uint8Array.of(0x01, 0x55, 0x12, 0x20, ...toBytes(sha256(bytes))))}`
}

function toBase32(bytes: Uint8Array): string {
  let text = ''
  let buffer = 0
  let bits = 0
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    bits += 8
    for (; bits >= 5; bits -= 5) text += BASE32.charAt((buffer >> (bits - 5)) & 31)
    buffer &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + BASE32.charAt((buffer << (5 - bits)) & 31)
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
