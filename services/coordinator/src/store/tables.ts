import type { ProofStatus, Statement, TxMetadata } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import type { ColumnType, Generated, GeneratedAlways } from 'kysely'

type Bytes = Uint8Array
/** Drivers answer 64-bit integers as text or number, by size. */
type BigInteger = ColumnType<string | number | bigint, string | number | bigint>
/** Written as JSON text, so that both drivers send the same. */
type Json<T> = ColumnType<T, string, never>

/** The tables as the migrations leave them, for Kysely. */
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
    return_to: string
    expires_at: Date
  }
  sessions: {
    sid_hash: Bytes
    user_id: string
    grant_token: string
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
    entropy_hash: Bytes
    entropy_sig: Bytes
    satellite_source: string
    witness: Json<Witness>
    created_at: Date
  }
  entropy_samples: { entropy_hash: Bytes; claimed_at: Date }
  collaterals: { hash: Bytes; bytes: Bytes }
  collateral_cache: { fmspc: string; ca: 'processor' | 'platform'; bytes: Bytes }
  self_attestations: { hash: Bytes; json: Bytes }
  batches: {
    boot_id: Bytes
    sequence: BigInteger
    content_hash: Bytes
    previous: Bytes
    tree_size: BigInteger
    quote: Bytes
    event_log: string | null
    mode: 'hardware' | 'mock'
    measurement: Json<Record<string, string>>
    config: Json<unknown>
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
  }
  pending_transactions: {
    id: Generated<BigInteger>
    wallet_id: string
    digest: Bytes
    signature: Bytes
    tx_hash: Bytes
    chain_id: BigInteger
    tx_metadata: Json<TxMetadata>
    created_at: Date
  }
  attestations: {
    pending_transaction_id: BigInteger
    slug: string
    verification_id: BigInteger
    statement: Json<Statement>
    leaf_index: number
    path: Bytes
    witness: Json<Witness>
    entropy_hash: Bytes
    release: Bytes
    status: ProofStatus
    receipt_bytes: Bytes | null
    ipfs_cid: string | null
    onchain_tx_hash: Bytes | null
    onchain_block_number: BigInteger | null
    created_at: Date
    pin_attempts: Generated<number>
    failure: string | null
    pinned_at: Date | null
    publication_id: BigInteger | null
    publish_limit: Generated<number>
  }
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
}
