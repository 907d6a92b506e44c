import type { EntryBundle, Tile } from '@countersign/log'
import type { AttestationPublished, Hex, LogInfo, WebhookData } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import type {
  AnyWitness,
  AskedSigner,
  FoundSigner,
  Login,
  Proof,
  ProofState,
  Session,
  Signing,
  SigningBatch,
  StoredPolicy,
  StoredSigning,
  Transaction,
  User,
  Vault,
  Wallet,
} from './store/types.ts'

/* What the coordinator needs from outside: made in `start.ts`, injected everywhere, faked in `ports.fake.ts`. */

/** Milliseconds since 1970. */
export type Clock = { now(): number }

/** Cryptographically strong random bytes. */
export type Random = (length: number) => Uint8Array<ArrayBuffer>

/** Runs a task once, after a delay. Returns a function that cancels it. */
export type Schedule = (task: () => void, delayMs: number) => () => void

/** That a leaf is to be the signature of a digest by a wallet. Off-chain signings have none: no two are the same. */
export type Claim = { walletId: string; digest: Hex; leaf: string }

export type CosignedNote = { size: number; note: string }

/** Rows of logs. What is written never changes. Logs are named by SHA-256 of their origins, hex. */
export type LogStore = {
  /**
   * One transaction under the lock of the log: entries, the hashes of full tiles, the checkpoint, and the claims. Entries that are there
   * already must be the same. `missing`: where entries are lacking in between, and nothing was written; else the lost claims. A claim can
   * be taken over when its leaf was dropped, its boot is over, or it is older than `claimMs`.
   */
  appendLog(parameters: {
    origin: string
    /** Verifier key. */
    key: string
    bootId: string
    from: number
    entries: readonly Uint8Array[]
    checkpoint: { size: number; root: Uint8Array; note: string }
    claims: readonly Claim[]
    claimMs: number
    now: number
  }): Promise<{ missing: number } | { lost: readonly string[] }>
  giveUpClaims(claims: readonly Claim[]): Promise<void>
  /** Those that were made before this time. */
  deleteClaims(before: number): Promise<void>
  listLogs(): Promise<LogInfo[]>
  /** The newest checkpoint that is written, with its frontier, and the newest that is cosigned. Undefined for a log that is not there. */
  findLogHead(hash: string): Promise<LogHead | undefined>
  /** The newest note that is cosigned. Undefined before the first. */
  findCosigned(hash: string): Promise<CosignedNote | undefined>
  /** Keeps a cosigned note, of a checkpoint that is written. */
  insertNote(parameters: { hash: string; size: number; note: string; now: number }): Promise<void>
  /** Hashes of tiles (level 0: of entries) of a tree of this size; throws where they are not all there. */
  readTiles(hash: string, tiles: readonly Tile[]): Promise<Uint8Array[]>
  /** The bundle of entries of this index and width. */
  readBundle(hash: string, bundle: EntryBundle): Promise<Uint8Array | undefined>
  /** Runs while no other coordinator does so for this log. One that waits too long runs all the same: the witnesses are the judges. */
  exclusively<Result>(hash: string, run: () => Promise<Result>): Promise<Result>
}

export type LogHead = {
  written: { size: number; note: string; bootId: string; hashes: readonly Uint8Array[] }
  cosigned: CosignedNote | undefined
}

/** What is told by webhooks of no row of its own, with what each says. */
export type WebhookWarning = Pick<WebhookData, 'vault.refused' | 'collateral.lapsing' | 'publisher.short_of_gas'>

/** What happens, for the servers of others. Where nobody is to be told, nothing is written. */
export type WebhookEvents = {
  /** Of one cause only so often; the rest is dropped. */
  write<Type extends keyof WebhookWarning>(type: Type, data: WebhookWarning[Type], now: number): Promise<void>
  /** The public keys that sign, 32 bytes each; none where there are no webhooks. */
  findKeys(): Promise<Uint8Array[]>
}

/** An identity provider, by its id. */
export type IdentityProvider = {
  /** For people. */
  readonly name: string
  /** A `data:` URL. */
  readonly icon: string
  /**
   * Where to send the browser. `mustChoose` has the provider ask who it is, though it may know somebody in this browser. Throws
   * `provider_unavailable`.
   */
  start(parameters: { state: string; nonce: string; codeVerifier: string; mustChoose: boolean }): Promise<URL>
  /**
   * Exchanges the code of a callback for the raw ID token and its claims. Throws `oauth_exchange_failed`, `oauth_refused` or
   * `provider_unavailable`.
   */
  finish(parameters: {
    callbackUrl: URL
    state: string
    nonce: string
    codeVerifier: string
  }): Promise<ProviderUser | 'cancelled'>
}

/** Who somebody is, in the words of their provider. */
export type ProviderUser = {
  idToken: string
  issuer: string
  subject: string
  email: string
  name: string | null
}

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
    witness: AnyWitness
    now: number
  }): Promise<Wallet>

  /**
   * The vault of the user and the policy: this one, or the one that is already there; with a job that pins the policy, unless that
   * is done. Throws `too_many_vaults`, where there is a limit: there is none for one that was made before.
   */
  createVault(parameters: {
    userId: string
    address: Hex
    kmsKeyId: string
    policy: StoredPolicy
    limit: number | null
    now: number
  }): Promise<Vault>
  findVault(parameters: { userId: string; policyHash: string }): Promise<Vault | undefined>
  /** Oldest first, and only those whose policy is pinned. */
  listVaults(userId: string): Promise<Vault[]>

  /** Claims samples, so that no two signatures on any coordinator share one; returns those that were not claimed before. */
  claimSamples(witnesses: readonly Witness[], now: number): Promise<Witness[]>

  /** One answer for each request. Marks sessions as seen, as `findSession` does. */
  findSigners(parameters: { asked: readonly AskedSigner[]; now: number; idleMs: number }): Promise<FoundSigner[]>
  /**
   * One transaction: pending transactions, attestations, the batch (unique on boot and sequence; several calls may bring the
   * same batch), its release and the jobs that publish them. Of each (wallet, digest) the first wins; returns the committed winner
   * of each. Off-chain signings have no digest here, and each is its own winner; one whose commitment the wallet has already is left out.
   */
  insertSignings(parameters: {
    batch: SigningBatch
    signings: readonly Signing[]
    now: number
  }): Promise<StoredSigning[]>

  /** When the user's wallets made a signature, by its position from the newest (1). Undefined where they have made fewer. */
  findSignedAt(parameters: { userId: string; position: number }): Promise<number | undefined>

  findProof(slug: string): Promise<Proof | undefined>
  /** Of the proofs that exist, in any order: for watching many at little cost. */
  findProofStates(slugs: readonly string[]): Promise<ProofState[]>
  /** Newest first, only those before `before` if it is given. None for a user without a wallet. */
  listTransactions(parameters: { userId: string; limit: number; before: string | undefined }): Promise<Transaction[]>

  ping(): Promise<void>
  close(): Promise<void>
}

/** A block as it is pinned: raw bytes under the CID that was computed here (CIDv1, codec raw, sha2-256). */
export type Block = { cid: string; bytes: Uint8Array<ArrayBuffer> }

/** Reads a block that this process holds. The reader hashes it. Undefined where it is not held. */
export type GetBlock = (cid: string) => Promise<Uint8Array<ArrayBuffer> | undefined>

/** The bytes as a service gives them back, hashed and compared with the CID here. Throws `PinError`. */
export type ReadBlock = (cid: string, options: { signal: AbortSignal }) => Promise<Uint8Array<ArrayBuffer>>

/** A user's proofs as a CAR, in parts, from those before that position on. Throws before the first part what can be told in an answer. */
export type ExportProofs = (parameters: {
  userId: string
  before: string | undefined
}) => Promise<AsyncGenerator<Uint8Array<ArrayBuffer>>>

/** Puts blocks where anyone can get them. All throw `PinError`. */
export type Pinner = {
  readonly name: 'helia' | 'kubo' | 'pinata'
  /** Resolves once the service confirms that it holds the block, under exactly this CID. Pinning twice is safe. */
  pin(block: Block, options: { signal: AbortSignal }): Promise<void>
  read: ReadBlock
  /** The same, but only where the service says today that it pins the block for us: what can be read may be a copy that nobody keeps. */
  readPinned: ReadBlock
  stop(): Promise<void>
}

/** A pin service that is another process. */
export type RemotePinner = Pinner & {
  /** Whether it takes our credentials, without pinning anything. Throws `PinError`. */
  probe(options: { signal: AbortSignal }): Promise<{ version?: string }>
}

/** EIP-1559, in wei. */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }

export type Call = { to: Hex; data: Hex }

export type UnsignedTransaction = Call & Fees & { nonce: number; gas: bigint; value?: bigint }

type SignedTransaction = { raw: Hex; hash: Hex }

export type ChainReceipt = {
  hash: Hex
  /** False where the transaction is in its block, but reverted. */
  isSuccess: boolean
  blockNumber: number
  blockHash: Hex
  gasUsed: bigint
  /** Of our contract only, in their order. */
  events: AttestationPublished[]
}

/** The chain that events go to, seen from the publisher's account. All throw `ChainError`. */
export type Chain = {
  readonly chainId: number
  /** The publisher's address, lower case. */
  readonly account: Hex
  /** ServiceAttestations, lower case. */
  readonly contract: Hex
  /** The most that is ever bid: neither reported as the market's fees nor signed beyond it. */
  readonly maxFeePerGas: bigint
  /** Throws where the RPC is of another chain, the contract has no code, or this account is not its publisher. */
  assertReady(): Promise<void>
  /** The next nonce, of the publisher unless another account is named: after the newest block, or after what waits in the node's mempool too. */
  getNonce(block: 'latest' | 'pending', account?: Hex): Promise<number>
  /** What the publisher has, in wei. */
  getBalance(): Promise<bigint>
  /** Twice the base fee plus the tip: it still pays after five full blocks in a row. */
  getFees(): Promise<Fees>
  /** Gas that a call needs now; `call_reverted` where it would fail. */
  estimateGas(call: Call): Promise<bigint>
  /** Signs, without asking the chain anything: raw bytes and their hash. The same transaction gives the same bytes. Throws above `maxFeePerGas`. */
  sign(transaction: UnsignedTransaction): Promise<SignedTransaction>
  /** Sends stored bytes. What the node knows already, or has mined, counts as sent. */
  send(raw: Hex): Promise<void>
  /** `undefined` where the transaction is in no canonical block, as far as the node knows; nodes may lag. */
  getReceipt(hash: Hex): Promise<ChainReceipt | undefined>
  /** `finalized` is `undefined` where the chain has never reported it. */
  getHead(): Promise<{ number: number; finalized: number | undefined }>
  /** Of the canonical block; `undefined` where there is none yet. */
  getBlockHash(number: number): Promise<Hex | undefined>
  /** The contract's events for these wallets and transactions, whatever their CID, in blocks since that time. */
  findEvents(parameters: {
    proofs: readonly Pick<AttestationPublished, 'wallet' | 'txHash'>[]
    sinceMs: number
  }): Promise<AttestationPublished[]>
}
