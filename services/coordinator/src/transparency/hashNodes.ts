import { hash } from 'node:crypto'

/* The protocol's hashes of trees (RFC 6962 §2.1), with the faster SHA-256: one or two of them for each signature of a user. */

export function hashLeaf(entry: Uint8Array): Uint8Array {
  const preimage = Buffer.allocUnsafe(1 + entry.length)
  preimage[0] = 0
  preimage.set(entry, 1)
  return new Uint8Array(hash('sha256', preimage, 'buffer'))
}

export function hashNode(left: Uint8Array, right: Uint8Array): Uint8Array {
  const preimage = Buffer.allocUnsafe(65)
  preimage[0] = 1
  preimage.set(left, 1)
  preimage.set(right, 33)
  return new Uint8Array(hash('sha256', preimage, 'buffer'))
}
