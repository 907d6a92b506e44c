import { parentPort } from 'node:worker_threads'
import { hashSignedTransaction, parseSignature, ServiceError, toAddress } from '@countersign/protocol'
import { isSampleSigned } from '../entropy/checkSample.ts'
import type { SignatureWork } from './checkSignatures.ts'
import { type ClaimBytes, unpackClaims } from './claimBytes.ts'
import { recover } from './secp256k1.ts'

/** A wallet signs often, and its address is always the same. */
const addresses = new Map<string, Buffer>()
const MAX_ADDRESSES = 4_096

function addressOf(publicKey: Buffer): Buffer {
  const name = publicKey.toString('latin1')
  const known = addresses.get(name)
  if (known !== undefined) return known
  const address = Buffer.from(toAddress(publicKey).slice(2), 'hex')
  if (addresses.size >= MAX_ADDRESSES) addresses.clear()
  addresses.set(name, address)
  return address
}

/**
 * The signature is well formed with a low s, and gives the stated key, whose address is the wallet's. Recovered and not only
 * verified: readers of the transaction learn its sender from `v` too.
 */
function isGood({ digest, signature, publicKey, address, transaction }: ClaimBytes): boolean {
  try {
    const { yParity } = parseSignature(signature)
    const key = recover(digest, signature.subarray(0, 64), yParity)
    return (
      key !== undefined &&
      publicKey.equals(key) &&
      addressOf(publicKey).equals(address) &&
      (transaction === undefined || transaction.txHash.equals(hashSignedTransaction(transaction.txMetadata, signature)))
    )
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}

function answer({ claims, samples }: SignatureWork): boolean[] {
  return claims === undefined ? samples.map(isSampleSigned) : unpackClaims(claims).map(isGood)
}

parentPort?.on('message', (work: SignatureWork) => parentPort?.postMessage(answer(work)))
parentPort?.postMessage('ready')
