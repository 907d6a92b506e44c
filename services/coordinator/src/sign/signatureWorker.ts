import { parentPort } from 'node:worker_threads'
import {
  equalBytes,
  type Hex,
  hashSignedTransaction,
  parseSignature,
  ServiceError,
  toAddress,
  toPrefixedHex,
} from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import { serveThread } from '@countersign/service/thread'
import type { SignatureAnswers, SignatureClaim, SignatureWork } from './checkSignatures.ts'
import { isSampleSigned } from './entropy/checkSample.ts'
import { recover } from './secp256k1.ts'

/**
 * The signature is well formed with a low s, and gives the stated key, whose address is the wallet's. Recovered and not only
 * verified: readers of the transaction learn its sender from `v` too.
 */
function isGood(
  { digest, signature, publicKey, address, transaction }: SignatureClaim,
  addressOf: (publicKey: string, bytes: Uint8Array) => Hex,
): boolean {
  try {
    const bytes = new Uint8Array(Buffer.from(signature.slice(2), 'hex'))
    const { yParity } = parseSignature(bytes)
    const key = recover(Buffer.from(digest.slice(2), 'hex'), bytes.subarray(0, 64), yParity)
    return (
      key !== undefined &&
      equalBytes(key, Buffer.from(publicKey, 'hex')) &&
      addressOf(publicKey, key) === address &&
      (transaction === undefined ||
        toPrefixedHex(hashSignedTransaction(transaction.txMetadata, bytes)) === transaction.txHash)
    )
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}

const MAX_ADDRESSES = 4_096
/** Callers wait for claims, and rarely for samples, which are bought ahead: after so many of these, claims that have come are next. */
const SAMPLES_AT_ONCE = 8

/** Takes the thread's work, and posts its answers. */
function createSignatureWork(post: (answers: SignatureAnswers) => void): (work: SignatureWork) => void {
  /** A wallet signs often, and its address is always the same. */
  const addresses = new Map<string, Hex>()
  const refills: { samples: readonly Witness[]; answers: boolean[] }[] = []

  function addressOf(publicKey: string, bytes: Uint8Array): Hex {
    const known = addresses.get(publicKey)
    if (known !== undefined) return known
    const address = toAddress(bytes)
    if (addresses.size >= MAX_ADDRESSES) addresses.clear()
    addresses.set(publicKey, address)
    return address
  }

  function checkSomeSamples() {
    const [refill] = refills
    if (refill === undefined) return
    const { samples, answers } = refill
    for (const sample of samples.slice(answers.length, answers.length + SAMPLES_AT_ONCE)) {
      answers.push(isSampleSigned(sample))
    }
    if (answers.length === samples.length) {
      refills.shift()
      post({ kind: 'samples', answers })
    }
    if (refills.length > 0) setImmediate(checkSomeSamples)
  }

  return ({ claims, samples }) => {
    if (claims !== undefined) {
      post({ kind: 'claims', answers: claims.map((claim) => isGood(claim, addressOf)) })
      return
    }
    // One series of turns, however many refills wait.
    if (refills.push({ samples, answers: [] }) === 1) setImmediate(checkSomeSamples)
  }
}

serveThread(createSignatureWork((answers) => parentPort?.postMessage(answers)))
