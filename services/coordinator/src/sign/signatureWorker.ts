import { parentPort } from 'node:worker_threads'
import {
  equalBytes,
  type Hex,
  hashParsedTransaction,
  parseSignature,
  ServiceError,
  toAddress,
  toPrefixedHex,
} from '@countersign/protocol'
import { serveThread } from '@countersign/service/thread'
import type { SignatureClaim } from './checkSignatures.ts'
import { recover } from './secp256k1.ts'

const MAX_ADDRESSES = 4_096
/** A wallet signs often and always has the same address. */
const addresses = new Map<string, Hex>()

function addressOf(publicKey: string, bytes: Uint8Array): Hex {
  const known = addresses.get(publicKey)
  if (known !== undefined) return known
  const address = toAddress(bytes)
  if (addresses.size >= MAX_ADDRESSES) addresses.clear()
  addresses.set(publicKey, address)
  return address
}

/**
 * Checks the form and low s of a signature, and that the recovered key belongs to the wallet's address. Recovery covers `v` too, from which
 * readers of the transaction derive its sender.
 */
function isGood({ digest, signature, publicKey, address, transaction }: SignatureClaim): boolean {
  try {
    const bytes = new Uint8Array(Buffer.from(signature.slice(2), 'hex'))
    const parsed = parseSignature(bytes)
    const key = recover(Buffer.from(digest.slice(2), 'hex'), bytes.subarray(0, 64), parsed.yParity)
    return (
      key !== undefined &&
      equalBytes(key, Buffer.from(publicKey, 'hex')) &&
      addressOf(publicKey, key) === address &&
      (transaction === undefined ||
        toPrefixedHex(hashParsedTransaction(transaction.txMetadata, parsed)) === transaction.txHash)
    )
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}

serveThread((claims: readonly SignatureClaim[]) => parentPort?.postMessage(claims.map(isGood)))
