import type { TcbStatus } from '@countersign/attestation'
import type { EnclaveConfig, Hex, ProofStatus, Statement, TxMetadata } from '@countersign/protocol'
import type { AttestationReceiptV1, SelfAttestation, Witness } from '@countersign/receipt'

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
  /** Canonical bytes; stored once by their hash. */
  collateral: Uint8Array
  selfAttestation: SelfAttestation
  coordinatorMode: 'hardware' | 'mock'
}

export type Signing = {
  /** 128 random bits, base64url: offered, and used if this signing is the first of its (wallet, digest). */
  slug: string
  walletId: string
  txMetadata: TxMetadata
  statement: Statement
  leafIndex: number
  path: readonly string[]
  witness: Witness
  /** The coordinator's release signature, 64 bytes, hex. */
  release: string
}

/** What was committed for a (wallet, digest): by this call, or by an earlier one. */
export type Signed = { walletId: string; digest: Hex; signature: Hex; slug: string }

/** Who asks for a signature, with the earlier answer where this digest was signed before. */
export type Signer = {
  userId: string
  grant: string
  keyId: string
  address: Hex
  /** Undefined where no wallet has been provisioned. */
  walletId: string | undefined
  signed: { signature: Hex; slug: string } | undefined
}

/** A mismatch is of rows that never change by themselves: session, user and wallet are of different keys. */
export type FoundSigner = Signer | 'expired' | 'key_binding_mismatch' | undefined

/** Everything that `GET /proof/:slug` tells. */
export type Proof = {
  slug: string
  txHash: Hex
  chainId: number
  walletAddress: Hex
  status: ProofStatus
  ipfsCid: string | null
  onchainTxHash: Hex | null
  onchainBlockNumber: number | null
  kmsQuoteVerified: boolean
  receipt: AttestationReceiptV1 | null
  createdAt: number
}

/** What of a proof can change. */
export type ProofState = Pick<Proof, 'slug' | 'status' | 'ipfsCid' | 'onchainTxHash' | 'onchainBlockNumber'>

/** A line in a user's list. Ids grow, and are positions in the list. */
export type Transaction = { id: string } & Pick<Proof, 'txHash' | 'chainId' | 'slug' | 'status' | 'createdAt'>

/** All reads and writes of the coordinator. Times are milliseconds since 1970. Failures of the database itself throw `database_unavailable`. */
export type Store = {
  createLogin(login: Login): Promise<void>
  /** Consumes a login: one `DELETE … RETURNING`, so that of two callbacks one wins. Undefined when unknown or expired. */
  takeLogin(parameters: { id: string; stateHash: string; now: number }): Promise<Login | undefined>

  /** Identity is issuer and subject; e-mail address and name follow the latest sign-in. A changed key id is refused with `key_binding_mismatch`. */
  upsertUser(user: Omit<User, 'id'> & { now: number }): Promise<User>
  createSession(session: Session): Promise<void>
  /** Also marks the session as seen, at most once a minute. `expired` when its absolute or idle time is over. */
  findSession(parameters: {
    sidHash: string
    now: number
    idleMs: number
  }): Promise<{ session: Session; user: User } | 'expired' | undefined>
  /** Whether there was one. */
  deleteSession(sidHash: string): Promise<boolean>

  findWallet(userId: string): Promise<Wallet | undefined>
  /** The wallet of the user: this one, or the one that is already there. */
  createWallet(parameters: {
    userId: string
    address: Hex
    kmsKeyId: string
    witness: Witness
    now: number
  }): Promise<Wallet>

  /** Claims samples, so that no two signatures on any coordinator share one; answers those that nobody had claimed. */
  claimSamples(witnesses: readonly Witness[], now: number): Promise<Witness[]>

  /** One answer for each that is asked. Marks sessions as seen, as `findSession` does. */
  findSigners(parameters: {
    asked: readonly { sidHash: string; digest: Hex }[]
    now: number
    idleMs: number
  }): Promise<FoundSigner[]>
  /**
   * One transaction: pending transactions, attestations, the batch (unique on boot and sequence; several calls may bring the
   * same batch) and the jobs that publish them. Of each (wallet, digest) the first wins; answers the committed winner of each.
   */
  insertSignings(parameters: { batch: SigningBatch; signings: readonly Signing[]; now: number }): Promise<Signed[]>

  findProof(slug: string): Promise<Proof | undefined>
  /** Of those that there are, in any order: for watching many at little cost. */
  findProofStates(slugs: readonly string[]): Promise<ProofState[]>
  /** Newest first, those before an id if one is given. None for a user without a wallet. */
  listTransactions(parameters: { userId: string; limit: number; before: string | undefined }): Promise<Transaction[]>

  ping(): Promise<void>
  close(): Promise<void>
}
