import type {
  AnyWitness,
  EnclaveSettings,
  OwnerOpening,
  ProofStatus,
  SignatureKind,
  WebhookData,
  WebhookType,
} from '@countersign/protocol'
import type { ColumnType, Generated, GeneratedAlways } from 'kysely'

type Bytes = Uint8Array
/** The driver returns 64-bit integers as text. */
type BigInteger = ColumnType<string | number | bigint, string | number | bigint>
/** Written as JSON text. */
type Json<T> = ColumnType<T, string, never>

/** The tables for Kysely. */
export type Tables = {
  users: {
    id: Generated<string>
    issuer: string
    subject: string
    email: string
    name: string | null
    kms_key_id: Bytes
    created_at: Date
    last_login_at: Date
  }
  logins: {
    id: string
    provider: string
    state_hash: Bytes
    code_verifier: string
    nonce: string
    client_key: Bytes | null
    return_to: string
    expires_at: Date
  }
  sessions: {
    sid_hash: Bytes
    user_id: string
    grant_token: string
    client_key: Bytes | null
    /** Opens the owner commitment of the wallet's address. */
    owner: Json<OwnerOpening>
    key_id: Bytes
    address: Bytes
    created_at: Date
    last_seen_at: Date
    expires_at: Date
  }
  wallets: {
    id: Generated<string>
    user_id: string
    address: Bytes
    kms_key_id: Bytes
    /** Null for a vault, like the next three. */
    entropy_hash: Bytes | null
    entropy_sig: Bytes | null
    satellite_source: string | null
    witness: Json<AnyWitness> | null
    created_at: Date
    /** Null for the user's own wallet. */
    policy_hash: Bytes | null
  }
  policies: { hash: Bytes; bytes: Bytes; created_at: Date; pinned_at: Date | null }
  collaterals: { hash: Bytes; bytes: Bytes }
  collateral_cache: { fmspc: string; ca: 'processor' | 'platform'; bytes: Bytes }
  self_attestations: { hash: Bytes; json: Bytes }
  batches: {
    boot_id: Bytes
    sequence: BigInteger
    content_hash: Bytes
    previous: Bytes
    leaves: Bytes
    quote: Bytes
    event_log: string | null
    mode: 'hardware' | 'mock'
    measurement: Json<Record<string, string>>
    config: Json<unknown>
    created_at: Date
  }
  coordinator_blocks: { hash: Bytes; bytes: Bytes }
  releases: {
    boot_id: Bytes
    sequence: BigInteger
    coordinator_key: Bytes
    content_hash: Bytes
    collateral_hash: Bytes
    coordinator_hash: Bytes
    settings: Json<EnclaveSettings>
    ed25519: Bytes
    ml_dsa_65: Bytes
    created_at: Date
  }
  verifications: {
    id: GeneratedAlways<BigInteger>
    boot_id: Bytes
    sequence: BigInteger
    content_hash: Bytes
    collateral_hash: Bytes
    self_attestation_hash: Bytes
    coordinator_mode: 'hardware' | 'mock'
    quote_verified: boolean
    tcb_status: string
    created_at: Date
    /** From its release, if any. */
    coordinator_key: Bytes | null
    /** The log's note that released the statements, if any. */
    log_note: Bytes | null
  }
  logs: { id: GeneratedAlways<number>; hash: Bytes; origin: string; key: string; created_at: Date }
  log_notes: { hash: Bytes; log_id: number; size: BigInteger; note: string; created_at: Date }
  signings: {
    id: BigInteger
    wallet_id: string
    verification_id: BigInteger
    chain_id: BigInteger
    created_at: Date
    /** The index of its log entry, if any. */
    log_index: BigInteger | null
    version: 1 | 2
    kind: SignatureKind
    /** The hash in the event. */
    tx_hash: Bytes
    /** Null for off-chain kinds. */
    digest: Bytes | null
    signature: Bytes | null
    /** A transaction's data. */
    data: Bytes | null
    /** Packed `SigningFacts`. */
    facts: Bytes
    /** Version 1 only. */
    release: Bytes | null
  }
  proofs: {
    signing_id: BigInteger
    slug: string
    status: ProofStatus
    ipfs_cid: string | null
    created_at: Date
    pinned_at: Date | null
    publication_id: BigInteger | null
    pin_attempts: Generated<number>
    failure: string | null
    publish_limit: Generated<number>
    /** The former size of the receipt's row, once it is only on IPFS. */
    receipt_dropped: number | null
  }
  /** Packed. */
  receipts: { signing_id: BigInteger; bytes: Bytes }
  publications: {
    id: GeneratedAlways<BigInteger>
    chain_id: BigInteger
    account: Bytes
    nonce: BigInteger
    contract: Bytes
    calldata: Bytes
    status: Generated<'pending' | 'confirmed' | 'final' | 'reverted' | 'cancelled' | 'lost'>
    tx_hash: Bytes | null
    block_number: BigInteger | null
    created_at: Date
  }
  anchors: { publication_id: BigInteger; log_id: number; id: Bytes; size: BigInteger; block: Bytes }
  publication_transactions: {
    tx_hash: Bytes
    publication_id: BigInteger
    kind: 'publish' | 'cancel'
    raw: Bytes
    gas: BigInteger
    /** Numeric: wei may exceed 64 bits. Read as text. */
    max_fee_per_gas: ColumnType<string, string>
    max_priority_fee_per_gas: ColumnType<string, string>
    created_at: Date
    sent_at: Date | null
  }
  webhook_receivers: { id: GeneratedAlways<number>; url_hash: Bytes; origin: string; is_active: boolean }
  webhook_keys: {
    key: Bytes
    /** The position among active receivers, or null if inactive. */
    place: number | null
    created_at: Date
  }
  webhook_events: {
    id: Generated<string>
    type: WebhookType
    cause: string | null
    data: Json<WebhookData[WebhookType]>
    created_at: Date
  }
  webhook_deliveries: {
    event_id: string
    receiver_id: number
    status: Generated<'pending' | 'delivered' | 'dead'>
    attempts: Generated<number>
    failure: string | null
    queued_at: Generated<Date>
    due_at: Generated<Date>
    settled_at: Date | null
  }
}
