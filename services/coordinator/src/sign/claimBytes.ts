import type { TxMetadata } from '@countersign/protocol'
import type { SignatureClaim } from './checkSignatures.ts'

/** Claims on their way to the thread: bytes change their owner, where objects would be copied member by member on both sides. */
export type PackedClaims = {
  /** So many for each claim: digest ‖ signature ‖ public key ‖ address ‖ transaction hash. */
  bytes: Uint8Array<ArrayBuffer>
  /** JSON: for each claim what its transaction is of, or null. */
  transactions: string
}

/** One claim as the thread reads it. */
export type ClaimBytes = {
  digest: Uint8Array
  signature: Uint8Array
  publicKey: Buffer
  address: Buffer
  transaction: { txHash: Buffer; txMetadata: TxMetadata } | undefined
}

/** Bytes of each part. */
const DIGEST = 32
const SIGNATURE = 65
const PUBLIC_KEY = 65
const ADDRESS = 20
const TX_HASH = 32
const CLAIM = DIGEST + SIGNATURE + PUBLIC_KEY + ADDRESS + TX_HASH

const NO_HASH = `0x${'00'.repeat(TX_HASH)}` as const

/** A claim with a part of another length becomes zeros, which no key has signed. */
export function packClaims(claims: readonly SignatureClaim[]): PackedClaims {
  const bytes = Buffer.from(new ArrayBuffer(claims.length * CLAIM))
  for (const [index, { digest, signature, publicKey, address, transaction }] of claims.entries()) {
    const txHash = transaction?.txHash ?? NO_HASH
    const isWhole =
      digest.length === 2 + 2 * DIGEST &&
      signature.length === 2 + 2 * SIGNATURE &&
      publicKey.length === 2 * PUBLIC_KEY &&
      address.length === 2 + 2 * ADDRESS &&
      txHash.length === 2 + 2 * TX_HASH
    if (!isWhole) continue
    const start = index * CLAIM
    const digits = `${digest.slice(2)}${signature.slice(2)}${publicKey}${address.slice(2)}${txHash.slice(2)}`
    if (bytes.write(digits, start, 'hex') !== CLAIM) bytes.fill(0, start, start + CLAIM)
  }
  return { bytes, transactions: JSON.stringify(claims.map(({ transaction }) => transaction?.txMetadata ?? null)) }
}

export function unpackClaims({ bytes, transactions }: PackedClaims): ClaimBytes[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return (JSON.parse(transactions) as (TxMetadata | null)[]).map((txMetadata, index) => {
    let offset = index * CLAIM
    const take = (length: number) => {
      offset += length
      return all.subarray(offset - length, offset)
    }
    const parts = {
      digest: take(DIGEST),
      signature: take(SIGNATURE),
      publicKey: take(PUBLIC_KEY),
      address: take(ADDRESS),
    }
    return { ...parts, transaction: txMetadata === null ? undefined : { txHash: take(TX_HASH), txMetadata } }
  })
}
