import { sha256 } from '@noble/hashes/sha2.js'
import { hashSignedAuthorization } from './authorization.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import { fromHex, type Hex, toPrefixedHex } from './hex.ts'
import type { SignatureKind } from './kinds.ts'
import * as preimages from './preimages.ts'
import { toPreimage } from './tags.ts'
import type { VaultBudget } from './vaultBudget.ts'

/** A transaction with its digest, signature and hash, as in receipts of both versions. */
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
  /** Present in version 2 if a rule of kind `spend` allowed it. */
  budget?: VaultBudget | undefined
}

/** An EIP-7702 authorization: the wallet delegates to the code of `address`. */
export type AuthorizationSubject = {
  chainId: number
  address: Hex
  nonce: number
  /** 32 bytes: the signed digest. */
  digest: Hex
  /** 65 bytes: r ‖ s ‖ v. */
  signature: Hex
}

/** Only the commitment (32 bytes): anyone with a signature over a message can use it. */
export type OffChainSubject = { commitment: string }

/**
 * An address, its rules, and its owner: the policy's hash (32 bytes, null for a wallet without one), and the commitment to the owner
 * (32 bytes, `hashOwner`).
 */
export type AddressSubject = { address: Hex; policy: string | null; owner: string }

/** An approver's key (32 bytes) that a vault never accepts again. */
export type RevocationSubject = { address: Hex; policy: string; key: string }

/** The public part of a signature, with its kind. */
export type Signed =
  | { kind: 'transaction'; subject: TransactionSubject }
  | { kind: 'authorization'; subject: AuthorizationSubject }
  | { kind: 'off-chain'; subject: OffChainSubject }
  | { kind: 'address'; subject: AddressSubject }
  | { kind: 'revocation'; subject: RevocationSubject }

/** A signature in its owner's list, by kind. A transaction has no `kind`. An off-chain signature has no other members. */
export type SignedSummary =
  | {
      kind?: undefined
      to: Hex
      /** Wei. */
      value: string
      /** At most its first 68 bytes. */
      data: Hex
      nonce: number
    }
  | {
      kind: 'authorization'
      /** The code that the wallet delegates to. */
      implementation: Hex
    }
  | { kind: 'off-chain' }
  | { kind: 'address' | 'revocation' }

/** A selector and two words, such as the recipient and amount of a token transfer. Calldata can be long, and the list shows no more. */
export const SUMMARY_DATA_BYTES = 68

type SubjectOf<Kind extends SignatureKind> = Extract<Signed, { kind: Kind }>['subject']

type Row<Subject, Summarized = Subject> = {
  toEventHash(subject: Subject): Hex
  /** Identifies repeated requests for the same signature. Null if each request gives a new one. */
  toDigest(subject: Subject): Hex | null
  summarize(subject: Summarized): SignedSummary
}

type SummarizedTransaction = Pick<TransactionSubject, 'to' | 'value' | 'data' | 'nonce'>

const rows: {
  [Kind in SignatureKind]: Row<SubjectOf<Kind>, Kind extends 'transaction' ? SummarizedTransaction : SubjectOf<Kind>>
} = {
  transaction: {
    toEventHash: ({ txHash }) => txHash,
    toDigest: ({ digestSigned }) => digestSigned,
    summarize({ to, value, data, nonce }) {
      return { to, value, data: data.slice(0, 2 + 2 * SUMMARY_DATA_BYTES) as Hex, nonce }
    },
  },
  authorization: {
    toEventHash({ chainId, address, nonce, signature }) {
      return toPrefixedHex(hashSignedAuthorization({ chainId, address, nonce }, fromHex(signature.slice(2))))
    },
    toDigest: ({ digest }) => digest,
    summarize: ({ address }) => ({ kind: 'authorization', implementation: address }),
  },
  'off-chain': {
    toEventHash: ({ commitment }) => `0x${commitment}`,
    toDigest: () => null,
    summarize: () => ({ kind: 'off-chain' }),
  },
  address: {
    toEventHash: (subject) => toPrefixedHex(hashSubject(subject)),
    toDigest: (subject) => toPrefixedHex(hashSubject(subject)),
    summarize: () => ({ kind: 'address' }),
  },
  revocation: {
    toEventHash: (subject) => toPrefixedHex(hashSubject(subject)),
    toDigest: (subject) => toPrefixedHex(hashSubject(subject)),
    summarize: () => ({ kind: 'revocation' }),
  },
}

/** SHA-256 of a subject, under its tag, for statements of version 2. */
export function hashSubject(subject: Signed['subject']): Uint8Array<ArrayBuffer> {
  return sha256(toPreimage(preimages.subject, { subject: toCanonicalJson(subject) }))
}

/**
 * The hash in the on-chain event, and `txHash` of the proof: the transaction's hash, the hash of the signed authorization
 * (`keccak256(rlp([chainId, address, nonce, yParity, r, s]))`), the commitment, or the hash of an address's subject.
 */
export function toEventHash({ kind, subject }: Signed): Hex {
  return rows[kind].toEventHash(subject as never)
}

/** Identifies repeated requests for the same signature. Null for off-chain content, which is signed again each time. */
export function toSignedDigest({ kind, subject }: Signed): Hex | null {
  return rows[kind].toDigest(subject as never)
}

export function toSignedSummary({
  kind,
  subject,
}: { kind: 'transaction'; subject: SummarizedTransaction } | Exclude<Signed, { kind: 'transaction' }>): SignedSummary {
  return rows[kind].summarize(subject as never)
}
