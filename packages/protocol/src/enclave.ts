import type { Approval, ApprovalReason } from './approval.ts'
import type { Authorization } from './authorization.ts'
import type { EnclaveConfig } from './configHash.ts'
import type { OffChainContent } from './contents.ts'
import type { DrandWitness } from './drand.ts'
import type { EntropyWitness } from './entropy.ts'
import type { Hex } from './hex.ts'
import type { Opening } from './opening.ts'
import type { PolicyRefusal } from './policyRefusal.ts'
import * as preimages from './preimages.ts'
import type { EnclaveSettings } from './settings.ts'
import type { Statement } from './statement.ts'
import type { StatementV2 } from './statementV2.ts'
import type { Signed } from './subject.ts'
import { toPreimage } from './tags.ts'
import type { TxMetadata } from './txMetadata.ts'

/*
 * Coordinator ↔ enclave. Each call is a POST with a JSON body, signed by the coordinator's key; there is no other way in. Byte
 * strings are lower-case hex without a prefix, except those of Ethereum.
 */

/** The calls, and where each is. */
export const enclavePaths = {
  attest: '/attest',
  openSession: '/open-session',
  sign: '/sign',
  vault: '/vault',
  log: '/log',
  release: '/release',
} as const

/**
 * Headers that carry a caller's key (32 bytes), time of calling (milliseconds) and signature (64 bytes); and the SHA-256 of the body, by which
 * the enclave checks the signature before it reads the body. A call without that last one is signed alike, and shares less memory with others.
 */
export const callerHeaders = {
  key: 'countersign-caller',
  time: 'countersign-time',
  signature: 'countersign-signature',
  bodyHash: 'countersign-body',
} as const

/** How far a caller's clock may be off. */
export const CALLER_TOLERANCE_MS = 30_000

/** What a coordinator signs (Ed25519) for each call: when, with which body (its SHA-256), and which call. */
export function toCallerMessage(call: { path: string; timeMs: number; bodyHash: Uint8Array }): Uint8Array<ArrayBuffer> {
  const { path, timeMs, bodyHash } = call
  return toPreimage(preimages.caller, { timeMs, bodyHash, path: new TextEncoder().encode(path) })
}

/** A coordinator's proof of what it is, for enclaves that ask: its SEV-SNP report over its key and configuration. */
export type CallerAttestation = {
  report: string
  certificates: { ek: string; ask: string; ark: string }
  /** AMD's revocation list, DER, where the coordinator could get it. */
  revocations?: string
  configHash: string
}

export type AttestRequest = {
  /** 32 bytes, fresh. */
  nonce: string
  /** Introduces the caller where the enclave has a caller policy. */
  caller?: CallerAttestation
}

/** A quote over `computeEnclaveAttestReportData({ tlsKeyHash, nonce, configHash })`. */
export type AttestResponse = {
  quote: string
  eventLog?: string
  config: EnclaveConfig
  /** Written out: the configuration has their hash. */
  settings: EnclaveSettings
  /** SHA-256 of the TLS key's SubjectPublicKeyInfo; zeros where there is no TLS. */
  tlsKeyHash: string
  bootId: string
  /**
   * Identifies the root secret, as in its backups: enclaves of one secret have the same. The quote need not cover it, since it comes over
   * a connection whose key the quote covers. Left out by enclaves of older releases.
   */
  commitment?: string
  /** Where the settings have a log. */
  logs?: {
    /** The origins that this enclave may write to, the preferred one first. */
    own: readonly string[]
    /** Verifier keys of all origins of the settings, in their order, so that witnesses can be told of them. */
    keys: readonly string[]
  }
}

export type OpenSessionRequest = {
  idToken: string
  /** 32 bytes; the token's nonce is its hash. */
  loginSecret: string
}

export type OpenSessionResponse = {
  /** 32 bytes: the session secret. It goes into the cookie and nowhere else. */
  sid: string
  grant: string
  keyId: string
  address: Hex
  /** When the grant ends, ISO 8601. */
  expiresAt: string
}

/** Derives a vault of the session's user. Nothing is signed. */
export type VaultRequest = {
  sid: string
  grant: string
  /** Canonical JSON. */
  policy: string
  /** The vault exists: only its key is asked for, and its rules are not judged. */
  isKnown?: true
}

export type VaultResponse = {
  keyId: string
  address: Hex
  /** 65 bytes. */
  publicKey: string
  /** 32 bytes: the hash of the policy. */
  policy: string
}

/** Which vault of the session's user is to sign, and who approves. */
export type VaultUse = {
  /** 32 bytes: the hash of the policy. */
  policy: string
  /** For a transaction, message or typed data. An empty list is none. */
  approvals?: readonly Approval[]
}

/** What every item has: whose key, why it may be used, and with which sample. */
type Granted = {
  sid: string
  grant: string
  /** Of the vault, where there is one. */
  keyId: string
  vault?: VaultUse
  /** The whole sample: the enclave verifies it, and signs once with it. A round of a beacon may serve many. */
  witness: EntropyWitness | DrandWitness
}

export type TransactionItem = Granted & {
  kind: 'transaction'
  digest: Hex
  txMetadata: TxMetadata
  /** The version of the receipt that the statement is for. Version 1 knows no beacons and no vaults. */
  statementVersion: 1 | 2
}

export type AuthorizationItem = Granted & { kind: 'authorization'; authorization: Authorization }

/** Its sample serves this one call: to sign the same again takes another. */
export type OffChainItem = Granted & OffChainContent

/** Asks for a statement that the address belongs to this enclave and these rules. The wallet key signs nothing. Its sample serves this one call. */
export type AddressItem = Granted & { kind: 'address' }

/** What is to be signed. None is a bare hash: the enclave rebuilds what it signs, and hashes it itself. */
export type SignItem = TransactionItem | AuthorizationItem | OffChainItem | AddressItem

export type SignItemsRequest = {
  /** 1 to 256 of any kinds. */
  items: readonly SignItem[]
  /** Canonical JSON of policies that items name, at most as many as items. Without it, an enclave that does not know one answers `policy_unknown`. */
  policies?: readonly string[]
}

export const MAX_SIGN_ITEMS = 256

/** What one quote covers, of one boot of one enclave. */
export type SignedBatch = {
  bootId: string
  sequence: number
  previous: string
  /** The leaf hashes, in their order: root and paths follow from them. */
  leaves: readonly string[]
  quote: string
  eventLog?: string
}

/** Why one item was not signed; the others of its call are not affected. */
export type SignItemError =
  | {
      error:
        | 'invalid_request'
        | 'invalid_tx_metadata'
        | 'message_too_large'
        | 'invalid_message'
        | 'invalid_typed_data'
        | 'authorization_not_allowed'
        | 'digest_mismatch'
        | 'grant_invalid'
        | 'session_expired'
        | 'key_binding_mismatch'
        | 'quote_unavailable'
        /** Not of a source in the settings, wrongly signed, too old, or too far ahead. */
        | 'entropy_refused'
        /** This boot has signed something else with the sample. */
        | 'entropy_used'
        /** Too many samples to remember: none can be told from one that was used. */
        | 'entropy_memory_full'
        /** Call again with the text of the policy: the sample was not used. */
        | 'policy_unknown'
        /** Not a policy that this enclave understands, or one that wants a log, which it does not have. */
        | 'policy_not_supported'
    }
  | { error: 'policy_refused'; details: PolicyRefusal }
  /** Every approval is valid, but so many more are needed. */
  | { error: 'approvals_missing'; missing: number }
  /** `index` is that in the list. */
  | { error: 'approval_invalid'; index: number; reason: ApprovalReason }

/** A statement of version 2 names what was signed by a hash, so it comes along. */
export type SignedStatement =
  | { statement: Statement }
  | {
      statement: StatementV2
      subject: Signed['subject']
      /** Of an off-chain kind. It is for the user, goes out once, and is kept by nobody. */
      opening?: Opening
    }

/** Which of the response's batches, and where in it. */
export type Placed = { batch: number; leafIndex: number }

export type SignItemResult = SignItemError | (SignedStatement & Placed)

/** Results in the order of the items. Items of one call may fall into several batches. */
export type SignItemsResponse = { batches: readonly SignedBatch[]; results: readonly SignItemResult[] }

/** Where the settings have a log: statements come by `release` alone, and here is only where their leaves are. */
export type LoggedItemsResponse = {
  batches: readonly SignedBatch[]
  results: readonly (SignItemError | Placed)[]
  /** Up to a checkpoint that covers all of the batches. Null where nothing was signed. */
  log: AppendedEntries | null
}

/** What an enclave has appended to its log, up to a checkpoint that it signed. */
export type AppendedEntries = {
  origin: string
  /** The index of the first of the entries. */
  from: number
  /** 57 bytes each: all from there up to the size of the checkpoint. */
  entries: readonly string[]
  /** A note with the signature of the log's key. */
  checkpoint: string
}

/** Starts the log of a boot, or repeats what was appended. */
export type LogRequest = {
  /**
   * Goes on from a checkpoint that the key of this origin signed, or from the empty tree (null). The first entry is that of the boot. A
   * log that this boot has started before is not started again: the answer repeats it.
   */
  start?: {
    origin: string
    checkpoint: string | null
    /** The frontier of the checkpoint's tree, 32 bytes each. */
    hashes: readonly string[]
  }
  /** The first entry to repeat. Those that a quorum is known to have cosigned may be forgotten: the answer says where it begins. */
  from?: number
}

export type LogResponse = {
  bootId: string
  /** The newest that this boot has started; null before the first. */
  log:
    | (AppendedEntries & {
        /** Whether a quorum cosigned the entry of the boot. Until then nothing is signed. */
        isOpen: boolean
      })
    | null
}

/** The second step of signing with a log: statements for a checkpoint that a quorum cosigned. */
export type ReleaseRequest = {
  /** The boot that signed. */
  bootId: string
  /** As this boot gave it, and lines of witnesses below it (`— name base64`). Both or neither: without them nothing is released. */
  checkpoint?: string
  cosignatures?: readonly string[]
  /** Leaves whose statements are asked for. Repeating it is harmless until they are acknowledged. */
  leaves?: readonly string[]
  /** Leaves that nobody waits for: erased for good, unless they were released. */
  drop?: readonly string[]
  /** Leaves whose statements are stored. */
  acknowledge?: readonly string[]
}

export type ReleaseResponse = {
  /** In the order of the leaves. Null for one that is not known, erased, not covered, or of another coordinator. */
  statements: readonly (SignedStatement | null)[]
}

/** The body of a refused call. */
export type EnclaveErrorBody = { error: { code: string; message: string } }
