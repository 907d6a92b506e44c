import { sha256 } from '@noble/hashes/sha2.js'
import { hashSignedAuthorization } from './authorization.ts'
import { concatBytes } from './bytes.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { fromHex, type Hex, toPrefixedHex } from './hex.ts'
import { tags, toTagBytes } from './tags.ts'

/**
 * What a statement can be about. Messages and typed data are one kind in public: which of them it was is part of what stays private.
 * For an address nothing is signed: the quote alone says whose it is.
 */
export const signatureKinds = ['transaction', 'authorization', 'off-chain', 'address'] as const

export type SignatureKind = (typeof signatureKinds)[number]

export function isSignatureKind(value: unknown): value is SignatureKind {
  return (signatureKinds as readonly unknown[]).includes(value)
}

/** The transaction, with its digest, signature and hash, as receipts of both versions have it. */
export type TransactionSubject = {
  chainId: number
  txHash: Hex
  from: Hex
  to: Hex
  nonce: number
  value: string
  data: Hex
  gas: string
  maxFeePerGas: string
  maxPriorityFeePerGas: string
  digestSigned: Hex
  signature: Hex
  signedAt: string
}

/** An EIP-7702 authorization: `address` is the code that the wallet delegates to. */
export type AuthorizationSubject = {
  chainId: number
  address: Hex
  nonce: number
  /** 32 bytes: what was signed. */
  digest: Hex
  /** 65 bytes: r ‖ s ‖ v. */
  signature: Hex
}

/** Nothing but the commitment (32 bytes): whoever holds a signature over a message can use it. */
export type OffChainSubject = { commitment: string }

/** An address, and the rules that it belongs to: the policy's hash (32 bytes), or null for a wallet without one. */
export type AddressSubject = { address: Hex; policy: string | null }

/** What was signed, as far as it is public, with its kind. */
export type Signed =
  | { kind: 'transaction'; subject: TransactionSubject }
  | { kind: 'authorization'; subject: AuthorizationSubject }
  | { kind: 'off-chain'; subject: OffChainSubject }
  | { kind: 'address'; subject: AddressSubject }

/** SHA-256 of a subject, under its tag: how statements of version 2 name it. */
export function hashSubject(subject: Signed['subject']): Uint8Array<ArrayBuffer> {
  return sha256(concatBytes(toTagBytes(tags.subject), toCanonicalJson(subject)))
}

/**
 * The second field of the event on the chain, and `txHash` of the proof: the transaction's hash, the hash of the signed
 * authorization (`keccak256(rlp([chainId, address, nonce, yParity, r, s]))`), the commitment, or the hash of an address's subject.
 */
export function toEventHash({ kind, subject }: Signed): Hex {
  if (kind === 'transaction') return subject.txHash
  if (kind === 'off-chain') return `0x${subject.commitment}`
  if (kind === 'address') return toPrefixedHex(hashSubject(subject))
  const { chainId, address, nonce, signature } = subject
  return toPrefixedHex(hashSignedAuthorization({ chainId, address, nonce }, fromHex(signature.slice(2))))
}
