import { parentPort } from 'node:worker_threads'
import {
  equalBytes,
  hashSignedTransaction,
  parseSignature,
  ServiceError,
  toAddress,
  toHex,
} from '@countersign/protocol'
import { recover } from 'tiny-secp256k1'
import type { SignatureClaim } from './checkSignatures.ts'

/**
 * The signature is well formed with a low s, and gives the stated key, whose address is the wallet's. Recovered and not only
 * verified: whoever reads the transaction learns its sender from `v` too.
 */
function isGood({ digest, signature, publicKey, address, txHash, txMetadata }: SignatureClaim): boolean {
  try {
    const bytes = new Uint8Array(Buffer.from(signature.slice(2), 'hex'))
    const { yParity } = parseSignature(bytes)
    const key = recover(Buffer.from(digest.slice(2), 'hex'), bytes.subarray(0, 64), yParity, false)
    return (
      key !== null &&
      equalBytes(key, Buffer.from(publicKey, 'hex')) &&
      toAddress(key) === address &&
      `0x${toHex(hashSignedTransaction(txMetadata, bytes))}` === txHash
    )
  } catch (error) {
    if (error instanceof ServiceError || error instanceof TypeError) return false
    throw error
  }
}

parentPort?.on('message', (claims: SignatureClaim[]) => parentPort?.postMessage(claims.map(isGood)))
parentPort?.postMessage('ready')
