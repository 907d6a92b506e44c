import type { TcbStatus } from '@countersign/attestation'
import type {
  Approval,
  AttestationPublished,
  DrandWitness,
  EnclaveConfig,
  EnclaveSettings,
  EntropyWitness,
  Hex,
  ProofStatus,
  SignatureKind,
  Signed,
  SignedSummary,
  Statement,
  StatementV2,
  TxMetadata,
} from '@countersign/protocol'
import type { SelfAttestation } from '@countersign/receipt'

/** A sample for one signature, or a round of a beacon, which may serve many. */
export type AnyWitness = EntropyWitness | DrandWitness

/** A sign-in under way, from the redirect to the callback. */
export type Login = {
  /** Short id of the state; names the cookie. */
  id: string
  provider: string
  /** SHA-256 of the state, hex. */
  stateHash: string
  codeVerifier: string
  nonce: string
  returnTo: string
  expiresAt: number
}

export type User = { id: string; issuer: string; subject: string; email: string; name: string | null; kmsKeyId: string }

/** A session. The database has only the hash of its secret, so a stolen copy signs nothing. */
export type Session = {
  /** SHA-256 of the session secret, hex. */
  sidHash: string
  userId: string
  grant: string
  keyId: string
  address: Hex
  createdAt: number
  lastSeenAt: number
  expiresAt: number
}

export type Wallet = {
  id: string
  userId: string
  address: Hex
  kmsKeyId: string
  createdAt: number
  /** Recorded once, and never changed: the database itself refuses. */
  provenance: { entropyHash: string; entropySig: string; satelliteSource: string }
}

/** A wallet whose key follows from its rules. */
export type Vault = {
  id: string
  userId: string
  address: Hex
  kmsKeyId: string
  createdAt: number
  policy: StoredPolicy
  /** Whether the policy's block was read back from where it was pinned. Until then nobody is shown the address. */
  isPinned: boolean
}

/** The hash (32 bytes, hex) and the canonical JSON that it is of. */
export type StoredPolicy = { hash: string; text: string }

/** What a batch of signings shares: one quote, one collateral, one attestation of the coordinator. */
export type SigningBatch = {
  bootId: string
  sequence: number
  previous: string
  treeSize: number
  quote: Uint8Array
  eventLog: string | undefined
  mode: 'hardware' | 'mock'
  tcbStatus: TcbStatus
  measurement: { mrTd: string; rtmr0: string; rtmr1: string; rtmr2: string; rtmr3: string }
  config: EnclaveConfig
  settings: EnclaveSettings
  /** Canonical bytes; stored once by their hash. */
  collateral: Uint8Array
  selfAttestation: SelfAttestation
  coordinatorMode: 'hardware' | 'mock'
  /** Where a signing of version 2 is among them. */
  release?: Release | undefined
  /** Where the settings have a log: the verifier key of the one that has the entries, and the cosigned note that released the statements. */
  logKey?: string | undefined
  log?: { origin: string; note: string } | undefined
}

/** A coordinator's release of a batch, with both of its signatures. */
export type Release = {
  /** 32 bytes, hex: the Ed25519 key, which the statements name. */
  coordinatorKey: string
  /** Canonical bytes of the block with its attestation; stored once by their hash. */
  coordinator: Uint8Array
  ed25519: Uint8Array
  mlDsa65: Uint8Array
}

export type Signing = {
  /** 128 random bits, base64url: offered, and used if this signing is the first of its (wallet, digest). */
  slug: string
  walletId: string
  leafIndex: number
  path: readonly string[]
} & (
  | {
      version: 1
      statement: Statement
      txMetadata: TxMetadata
      witness: EntropyWitness
      /** The coordinator's release signature, 64 bytes, hex. */
      release: string
    }
  /** Of an off-chain kind the subject is the commitment, and nothing else of the signature gets here. */
  | {
      version: 2
      statement: StatementV2
      signed: Signed
      witness: AnyWitness
      /** Of a vault's transaction, where there were any. */
      approvals?: readonly Approval[] | undefined
      /** Where in the batch's log its entry is. */
      logIndex?: number | undefined
    }
)

/** What was committed for a (wallet, digest): by this call, or by an earlier one. An off-chain signing has only its slug; for an address nothing is signed. */
export type StoredSigning = { walletId: string; digest: Hex | null; signature: Hex | null; slug: string }

/** Who asks for a signature, with the earlier answer where this digest was signed before. */
export type Signer = {
  userId: string
  grant: string
  /** Of the wallet that is to sign, as the address. */
  keyId: string
  address: Hex
  /** Undefined where no wallet has been provisioned. */
  walletId: string | undefined
  /** Where a vault is to sign. */
  policy?: StoredPolicy
  signed: Pick<StoredSigning, 'signature' | 'slug'> | undefined
}

/** What a signer is found by. Without a digest no earlier signature is looked for; without a wallet it is the user's own. */
export type AskedSigner = { sidHash: string; digest: Hex | undefined; wallet?: Hex | undefined }

/** A mismatch is of rows that never change by themselves: session, user and wallet are of different keys. */
export type FoundSigner = Signer | 'expired' | 'key_binding_mismatch' | 'vault_not_found' | undefined

/** Everything in the answer of `GET /proof/:slug`. */
export type Proof = {
  slug: string
  kind: SignatureKind
  txHash: Hex
  chainId: number
  walletAddress: Hex
  status: ProofStatus
  ipfsCid: string | null
  onchainTxHash: Hex | null
  onchainBlockNumber: number | null
  kmsQuoteVerified: boolean
  /** Canonical JSON. */
  receipt: Uint8Array | null
  /** Where the receipt is on IPFS alone: only of a final proof. */
  isDropped?: true
  createdAt: number
  /** Whether nothing of it changes again, since its publication is final. */
  isFinal: boolean
}

/** What of a proof can change. */
export type ProofState = Pick<Proof, 'slug' | 'status' | 'ipfsCid' | 'onchainTxHash' | 'onchainBlockNumber' | 'isFinal'>

/** A line in a user's list. Ids grow, and are positions in the list. */
export type Transaction = { id: string } & Pick<Proof, 'txHash' | 'chainId' | 'slug' | 'status' | 'createdAt'> & {
    /** Of a vault. */
    walletAddress?: Hex
  } & SignedSummary

/** Why a proof is `onchain_failed`; kept in `attestations.failure`. */
export type PublishFailure =
  /** Its deadline passed before it went into any transaction. */
  | 'publish_deadline'
  /** Its transaction was not mined in time, and its nonce has been used up. */
  | 'publish_cancelled'
  /** The contract refuses it, and only it. */
  | 'publish_reverted'
  /** Its transaction was mined, but the events are not there. */
  | 'publish_unconfirmed'

/** A pinned proof that no publication has. */
export type DueProof = AttestationPublished & {
  slug: string
  pinnedAt: number
  /** The largest publication that it may go into. */
  publishLimit: number
}

export type PublicationTransaction = {
  hash: Hex
  raw: Hex
  /** A cancel uses the nonce up and does nothing. */
  kind: 'publish' | 'cancel'
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

/** All that sending takes. */
export type SignedTransaction = Pick<PublicationTransaction, 'hash' | 'raw' | 'kind'>
export type UnsentTransaction = SignedTransaction & { nonce: number }

export type StoredTransaction = PublicationTransaction & {
  createdAt: number
  /** The last time; undefined where no node is known to have taken it. */
  sentAt: number | undefined
}

/** One nonce of an account, and everything that was ever signed for it. */
export type OpenPublication = {
  id: number
  status: 'pending' | 'confirmed'
  account: Hex
  nonce: number
  contract: Hex
  calldata: Hex
  /** Where it was mined, once confirmed. */
  mined: MinedAt | undefined
  createdAt: number
  /** By fee: what replaces another pays more, so the last is the newest. */
  transactions: StoredTransaction[]
}

export type MinedAt = { txHash: Hex; blockNumber: number }

export type ClaimParameters = {
  chainId: number
  account: Hex
  nonce: number
  contract: Hex
  calldata: Hex
  /** None for a transaction that only fills a gap. */
  slugs: readonly string[]
  transaction: PublicationTransaction
  now: number
}

/** How far an event has come on its way to a receiver. A dead one was given up, until an operator sends it again. */
export type WebhookStatus = 'pending' | 'delivered' | 'dead'
