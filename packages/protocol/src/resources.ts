import type { EnclaveConfig } from './configHash.ts'
import type { Hex } from './hex.ts'
import type { SignatureKind } from './kinds.ts'
import type { PolicyRefusal } from './policyRefusal.ts'
import type { ProofStatus } from './proofStatus.ts'
import type { AttestationReceiptV2 } from './receiptV2.ts'
import type { Statement } from './statement.ts'
import type { SignedSummary, TransactionSubject } from './subject.ts'
import type { TcbStatus } from './tcbStatus.ts'

/* The words of specification §2, as browser and coordinator speak them. Types only. */

/** The person who is signed in. */
export type SessionUser = { id: string; email: string; name: string | null }

/** A way to sign in. */
export type LoginProvider = {
  /** What stands in the path of its sign-in. */
  id: string
  /** For people. */
  name: string
  /** A small square picture, as a `data:` URL for an `<img>`. */
  icon: string
}

/** A log of an enclave. */
export type LogInfo = {
  /** 32 bytes, hex: SHA-256 of the origin. Its parts are below `/log/<hash>`. */
  hash: string
  origin: string
  /** The verifier key, `name+id+key`. */
  key: string
  /** Of the newest checkpoint that the witnesses cosigned; 0 before the first. */
  size: number
}

/** A wallet, with the witness of its provisioning. */
export type WalletInfo = {
  address: Hex
  /** ISO 8601. */
  createdAt: string
  /** Captured at provisioning; it never changes. The witness of each signature is in that signature's receipt. */
  provenance: { entropyHash: string; entropySig: string; satelliteSource: string }
}

/** A wallet whose key follows from its rules: they never change, and who loses them loses the key. */
export type VaultInfo = {
  address: Hex
  /** 32 bytes, hex: SHA-256 of the policy's canonical JSON. */
  policyHash: string
  /** Of the block that holds the policy. */
  policyCid: string
  /** As `@countersign/policy` has it. */
  policy: object
  /** ISO 8601. */
  createdAt: string
}

/** What `signAndSend` takes. Nonce and fees come from the RPC and cannot be given. */
export type SignRequest = {
  to: Hex
  /** Wei as a bigint, or ether as a decimal string; 0 if it is not given. */
  value?: bigint | string | undefined
  /** `0x` if it is not given. */
  data?: Hex | undefined
  /** 21000 if it is not given, which is too little for a contract call. */
  gas?: bigint | undefined
}

/** The body of `GET /proof/:slug`. */
export type ProofPayload = {
  slug: string
  /** Only where it is not a transaction. */
  kind?: Exclude<SignatureKind, 'transaction'> | undefined
  /** What the event names: the transaction’s hash, the hash of the signed authorization, or the commitment. */
  txHash: Hex
  /** 0 for a signature that is off the chain. */
  chainId: number
  walletAddress: Hex
  status: ProofStatus
  /** Null while `pending_pin`. */
  ipfsCid: string | null
  ipfsUrl: string | null
  /** Null or unconfirmed while `pending_onchain`. */
  onchainTxHash: Hex | null
  /** Set when `complete`. */
  onchainBlockNumber: number | null
  /** Whether the service says that it verified the quote. A verifier finds out for itself. */
  kmsQuoteVerified: boolean
  /** Null until the pin completes. */
  receipt: AttestationReceiptV1 | AttestationReceiptV2 | null
  /** ISO 8601. */
  createdAt: string
}

/** One signature in the body of `GET /wallet/transactions`. */
export type TransactionSummary = SignedSummary & {
  /** Only where a vault signed. */
  walletAddress?: Hex | undefined
  txHash: Hex
  chainId: number
  slug: string
  /** Of its proof. */
  status: ProofStatus
  /** ISO 8601. */
  createdAt: string
}

/** The body of `GET /wallet/transactions`, newest first. */
export type TransactionPage = {
  transactions: TransactionSummary[]
  /** For the next page; null on the last. */
  nextCursor: string | null
}

/** The body of `GET /health/attestation`: the coordinator's SEV-SNP report over its own key. Hex without a prefix. */
export type CoordinatorAttestation = {
  vendor: 'amd-sev-snp'
  mode: EvidenceMode
  report: string
  certificates: { ek: string; ask: string; ark: string }
  measurement: string
  publicKey: string
  configHash: string
  /** ISO 8601. */
  fetchedAt: string
  /** ISO 8601. */
  expiresAt: string
  /** Only where the caller sent a nonce: the nonce, and Ed25519 over its tagged bytes by `publicKey`. */
  nonce?: string
  signature?: string
  /** Only where there are webhooks: the keys that sign them (`whpk_…`), each with Ed25519 by `publicKey` that says so. Null while the coordinator does not know them. */
  webhookKeys?: { key: string; signature: string }[] | null
}

/** The body of every failure: RFC 9457 with our stable `code`. */
export type Problem = {
  type: string
  title: string
  status: number
  code: string
  detail?: string
  /** Only for `policy_refused`. */
  refusal?: PolicyRefusal
  requestId: string
  /** Whether the same call may succeed later. */
  retryable: boolean
}

/** Whether a part of the evidence says of itself that it comes from hardware. A verifier decides by the root that signed it. */
export type EvidenceMode = 'hardware' | 'mock'

/**
 * The public proof of one signature, as it is pinned to IPFS: `packages/receipt/spec/receipt-v1.md` says what each member means
 * and how it is checked, and the schema there is of exactly this type. Hex without a prefix where the type is `string`; amounts are
 * decimal strings in wei; times are ISO 8601.
 */
export type AttestationReceiptV1 = {
  version: 'countersign-attestation/1'
  spec: 'urn:countersign:spec:receipt:1'
  transaction: TransactionSubject
  /** The key enclave: its quote, and how the quote covers this signature. */
  signer: {
    kind: 'tdx'
    mode: EvidenceMode
    keyId: string
    publicKey: string
    quoteHex: string
    quoteVerified: boolean
    measurement: { mrTd: string; rtmr0: string; rtmr1: string; rtmr2: string; rtmr3: string }
    tcbStatus: TcbStatus
    statement: Statement
    inclusion: { leafIndex: number; treeSize: number; path: readonly string[] }
    batch: { bootId: string; sequence: number; previous: string }
    config: EnclaveConfig
    eventLog?: string | undefined
    /** CID of the collateral that the quote was verified with. */
    collateral: string
  }
  /** The coordinator's attestation of its own key, and that key's signature over the release. */
  coordinator: {
    kind: 'sev-snp'
    mode: EvidenceMode
    selfAttestation: {
      reportHex: string
      certificates: { ek: string; ask: string; ark: string }
      measurement: string
      configHash: string
      fetchedAt: string
    }
    publicKey: string
    release: string
  }
  /** The sample drawn for this signature, with its source's signature. */
  entropy: {
    source: string
    valueHex: string
    signatureHex: string
    publicKey: string
    timestamp: string
    sequence: number
  }
  /** Constants that a verifier compares, never trusts. */
  verification: {
    instructions: string
    trustAnchors: { intelRootSha256: string; amdRootSha256: readonly string[] }
  }
  issuedAt: string
}
