import type { EnclaveConfig } from './configHash.ts'
import type { Hex } from './hex.ts'
import type { SignatureKind } from './kinds.ts'
import { ownerOpening } from './owner.ts'
import { isPlainObject } from './plainObject.ts'
import { policyRefusal } from './policyRefusal.ts'
import { proofStatuses } from './proofStatus.ts'
import type { AttestationReceiptV2 } from './receiptV2.ts'
import {
  absent,
  boolean,
  checked,
  either,
  ethereum,
  hex,
  hexUpTo,
  type Infer,
  leaf,
  list,
  literal,
  natural,
  nullable,
  type ObjectSchema,
  object,
  optional,
  type Schema,
  string,
  text,
  time,
  wei,
} from './schema.ts'
import type { Statement } from './statement.ts'
import type { TransactionSubject } from './subject.ts'
import type { TcbStatus } from './tcbStatus.ts'

/* The resources of specification §2, as exchanged by browser and coordinator. The coordinator's API document describes them in detail. */

/** The signed-in user. */
export const sessionUser = object({ id: text, email: string(), name: nullable(string()) })
export type SessionUser = Infer<typeof sessionUser>

/** `bound`: each signature needs a stamp of the browser's key. */
const sessionKind = literal('cookie', 'bound')

// Shared members are repeated: bundlers keep a spread even if nothing uses its object.

/** The session of the caller. */
export const sessionInfo = object({
  kind: sessionKind,
  /** ISO 8601. */
  createdAt: time,
  expiresAt: time,
  /** 65 bytes. */
  clientKey: nullable(hex(65)),
  /** The service's clock. */
  time,
})

/** All open sessions of a user. */
export const sessionList = object({
  sessions: list(
    object({
      id: hex(8),
      kind: sessionKind,
      createdAt: time,
      expiresAt: time,
      lastSeenAt: time,
      isCurrent: boolean,
    }),
  ),
})

/** A session without a cookie: `Authorization: Session <secret>`. */
export const tokenSession = object({ secret: hex(32), expiresAt: time })

/** A way to sign in. */
export const loginProvider = object({
  /** The name in the path of its sign-in. */
  id: string(),
  /** The display name. */
  name: string(),
  /** A small square icon, as a `data:` URL for an `<img>`. */
  icon: string(/^data:image\/svg\+xml;base64,/),
  /** Present if pages sign in at the provider themselves, with this client. */
  direct: optional(object({ issuer: string(), clientId: string() })),
})
export type LoginProvider = Infer<typeof loginProvider>

/** The body of `GET /auth`. */
export const loginProviders = object({ providers: list(loginProvider) })

/** A log of an enclave. */
export const logInfo = object({
  /** SHA-256 of the origin. The log is below `/log/<hash>`. */
  hash: hex(32),
  origin: string(),
  /** The verifier key, `name+id+key`. */
  key: string(),
  /** The newest checkpoint that the witnesses cosigned; 0 before the first. */
  size: natural,
})
export type LogInfo = Infer<typeof logInfo>

/** The body of `GET /log`. */
export const logList = object({ logs: list(logInfo) })

/** A wallet, with the sample of its provisioning. */
export const walletInfo = object({
  address: ethereum(20),
  /** ISO 8601. */
  createdAt: time,
  /** Drawn at provisioning; it never changes. Each signature's receipt has its own sample. */
  provenance: object({
    entropyHash: hex(32),
    /** Ed25519, or a beacon's BLS. */
    entropySig: string(/^(?:[0-9a-f]{32}){3,4}$/),
    satelliteSource: text,
  }),
})
export type WalletInfo = Infer<typeof walletInfo>

/** The rules of a vault, as `@countersign/policy` has them. */
export const policy = leaf<object>(isPlainObject)

/** A wallet with a key derived from its rules. The rules never change, and losing them means losing the key. */
export const vaultInfo = object({
  address: ethereum(20),
  /** 32 bytes, hex: SHA-256 of the policy's canonical JSON. */
  policyHash: hex(32),
  /** CID of the policy block. */
  policyCid: string(),
  /** As `@countersign/policy` has it. */
  policy,
  /** ISO 8601. */
  createdAt: time,
})
export type VaultInfo = Infer<typeof vaultInfo>

/** The body of `GET /vaults`. */
export const vaultList = object({ vaults: list(vaultInfo) })

/** The body of `GET /vaults/{address}/budget`. */
export const vaultBudgetInfo = object({
  /** Seconds since 1970: the service's time, which decides the current windows. */
  time: natural,
  /** The changes of the vault's state. 0 before the first. */
  sequence: natural,
  /** By their index in the policy. `window` and `spent` are those of the state, `left` is what the current window allows. */
  budgets: list(object({ window: natural, spent: wei, left: wei })),
  /** Public keys. */
  revoked: list(hex(32)),
  /** The state in the log. Null before the first change. */
  proof: nullable(
    object({
      row: natural,
      state: hexUpTo(364),
      /** The audit path of the state to the root of the table in `entry`. */
      path: list(hex(32)),
      entry: hex(57),
      index: natural,
      /** The inclusion proof of `entry` in the tree of `checkpoint`. */
      entryPath: list(hex(32)),
      /** A note with the cosignatures of a quorum. */
      checkpoint: string(),
    }),
  ),
})
export type VaultBudgetInfo = Infer<typeof vaultBudgetInfo>

/** The request of `signAndSend`. Nonce and fees come from the RPC. */
export type SignRequest = {
  to: Hex
  /** Wei as a bigint, or ether as a decimal string. Default: 0. */
  value?: bigint | string | undefined
  /** Default: `0x`. */
  data?: Hex | undefined
  /** Default: 21000, which is too little for a contract call. */
  gas?: bigint | undefined
}

/** 16 bytes in base64url, for internal use. */
export const slug = string(/./)

/** A slug, and what opens the owner commitment of the address. */
export const attestAddressResponse = object({ slug, owner: ownerOpening })
export type AttestAddressResponse = Infer<typeof attestAddressResponse>

/** The response to `POST /sign/digest`. The signature is r ‖ s ‖ v, with a low s and v = 27 or 28. */
export const signDigestResponse = object({ signature: ethereum(65), slug })
export type SignDigestResponse = Infer<typeof signDigestResponse>

export const okResponse = object({ ok: literal(true) })

const shared = {
  slug,
  /** The hash in the event: the transaction’s hash, the hash of the signed authorization, or the commitment. */
  txHash: ethereum(32),
  /** 0 for an off-chain signature. */
  chainId: natural,
  /** When the proof was created. */
  status: literal(...proofStatuses),
  /** ISO 8601. */
  createdAt: time,
}

/** The checkpoint on the chain that covers a signature. */
export type ProofAnchor = {
  chainId: number
  /** `LogWitness`. */
  contract: Hex
  /** The log in the contract. */
  id: Hex
  /** The size of the tree in the checkpoint. */
  size: number
  /** The index of the signature's entry. */
  index: number
  /** The inclusion proof of the entry, from the sibling up, in hex. */
  path: readonly string[]
  txHash: Hex
  blockNumber: number
}

const proof = object({
  ...shared,
  /** Present if a checkpoint published it instead of an event. Any value: only verifiers read it, so apps load no check of its members. */
  anchor: optional({} as Schema<ProofAnchor>),
  /** Missing for a transaction. Unknown kinds pass through: without its kind, such a proof would look like that of a transaction. */
  kind: optional(text as Schema<Exclude<SignatureKind, 'transaction'>>),
  walletAddress: ethereum(20),
  /** Null while `pending_pin`. */
  ipfsCid: nullable(string()),
  /** Apps turn this into a link, so `javascript:` is rejected. */
  ipfsUrl: nullable(string(/^(?:https?|ipfs):/)),
  /** Null or unconfirmed while `pending_onchain`. */
  onchainTxHash: nullable(ethereum(32)),
  /** Set when `complete`. */
  onchainBlockNumber: nullable(natural),
  /** Whether the service claims that it verified the quote. A verifier checks for itself. */
  kmsQuoteVerified: boolean,
  /** Null until the pin completes. Informative: a verifier reads the pinned bytes instead. */
  receipt: nullable(leaf<AttestationReceiptV1 | AttestationReceiptV2>(isPlainObject)),
})

/** The body of `GET /proof/:slug`. Specification §3: a complete proof has all three. */
export const proofPayload = checked(
  proof,
  ({ status, ipfsCid, onchainTxHash, onchainBlockNumber }) =>
    status !== 'complete' || ![ipfsCid, onchainTxHash, onchainBlockNumber].includes(null),
)
export type ProofPayload = Infer<typeof proofPayload>

const summary = {
  ...shared,
  /** Present if a vault signed. */
  walletAddress: optional(ethereum(20)),
}

type PrivateSummary<Kind> = Infer<ObjectSchema<typeof summary & { kind: Schema<Kind> }>>

/** One signature in the body of `GET /wallet/transactions`. A transaction has no kind. Unknown kinds pass through. */
export const transactionSummary = either(
  object({
    ...summary,
    kind: absent,
    to: ethereum(20),
    value: wei,
    /** At most its first 68 bytes. */
    data: string(/^0x(?:[0-9a-f]{2}){0,68}$/) as Schema<Hex>,
    nonce: natural,
  }),
  object({ ...summary, kind: literal('authorization'), implementation: ethereum(20) }),
  object({ ...summary, kind: string(/^(?!authorization$)/) }) as Schema as Schema<
    PrivateSummary<'off-chain'> | PrivateSummary<'address'> | PrivateSummary<'revocation'>
  >,
)
export type TransactionSummary = Infer<typeof transactionSummary>

/** The body of `GET /wallet/transactions`, newest first. */
export const transactionPage = object({
  transactions: list(transactionSummary),
  /** For the next page; null on the last. */
  nextCursor: nullable(string()),
})
export type TransactionPage = Infer<typeof transactionPage>

/** The body of `GET /health/attestation`: the coordinator's SEV-SNP report over its own key. Hex without a prefix. */
export const coordinatorAttestation = object({
  vendor: literal('amd-sev-snp'),
  mode: literal('hardware', 'mock'),
  report: hex(1184),
  certificates: object({ ek: string(), ask: string(), ark: string() }),
  measurement: hex(48),
  publicKey: hex(32),
  configHash: hex(32),
  /** ISO 8601. */
  fetchedAt: time,
  /** ISO 8601. */
  expiresAt: time,
  /** Present if the caller sent a nonce: the nonce, and an Ed25519 signature over its tagged bytes by `publicKey`. */
  nonce: optional(string()),
  signature: optional(hex(64)),
  /**
   * Present if the service has webhooks: the keys that sign them (`whpk_…`), each certified with Ed25519 by `publicKey`. Null while the
   * coordinator
   * does not know them.
   */
  webhookKeys: optional(nullable(list(object({ key: string(), signature: hex(64) })))),
})
export type CoordinatorAttestation = Infer<typeof coordinatorAttestation>

/** The body of every failure: RFC 9457 with our stable `code`. */
export const problem = object({
  type: string(),
  title: string(),
  status: natural,
  code: string(),
  detail: optional(string()),
  /** Only for `policy_refused`. */
  refusal: optional(policyRefusal),
  /** Only for `budget_exceeded`: the index of the budget in the policy, and what it still allows. */
  budget: optional(natural),
  left: optional(wei),
  requestId: string(),
  /** Whether the same call may succeed later. */
  retryable: boolean,
})
export type Problem = Infer<typeof problem>

/** Whether evidence claims to come from hardware. A verifier decides by the root of trust. */
export type EvidenceMode = 'hardware' | 'mock'

/**
 * The public proof of one signature, as pinned to IPFS. `packages/receipt/spec/receipt-v1.md` describes each member and its checks; the
 * schema there has exactly this type. Hex has no prefix where the type is `string`; amounts are decimal strings in wei; times are ISO 8601.
 */
export type AttestationReceiptV1 = {
  version: 'countersign-attestation/1'
  spec: 'urn:countersign:spec:receipt:1'
  transaction: Omit<TransactionSubject, 'budget'>
  /** The key enclave: its quote, and the inclusion of this signature. */
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
    /** CID of the collateral that verified the quote. */
    collateral: string
  }
  /** The coordinator's attestation of its key, and that key's signature over the release. */
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
  /** The sample of this signature, with its source's signature. */
  entropy: {
    source: string
    valueHex: string
    signatureHex: string
    publicKey: string
    timestamp: string
    sequence: number
  }
  /** Constants. A verifier compares them with its own. */
  verification: {
    instructions: string
    trustAnchors: { intelRootSha256: string; amdRootSha256: readonly string[] }
  }
  issuedAt: string
}
