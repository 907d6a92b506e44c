import { approvalReason } from './approvalReason.ts'
import type { EnclaveConfig } from './configHash.ts'
import type { Opening } from './opening.ts'
import { policyRefusal } from './policyRefusal.ts'
import {
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
  object,
  optional,
  type Schema,
  string,
} from './schema.ts'
import type { EnclaveSettings } from './settings.ts'
import type { Statement } from './statement.ts'
import type { StatementV2 } from './statementV2.ts'
import type { Signed } from './subject.ts'

/* What an enclave answers to the calls of `enclave.ts`. The enclave loads nothing of it: it only has the types. */

/** An object that `JSON.parse` made. What it says is judged where it is used. */
const unread = <Value>() => leaf<Value>((value) => typeof value === 'object' && value !== null && !Array.isArray(value))

/** Real quotes are 5 to 8 KiB. */
const quote = hexUpTo(65_536)
/** As long as a receipt takes. */
const eventLog = optional(checked(string(), ({ length }) => length <= 131_072))

/** A quote over `computeEnclaveAttestReportData({ tlsKeyHash, nonce, configHash })`. */
export const attestResponse = object({
  quote,
  eventLog,
  config: unread<EnclaveConfig>(),
  /** Written out: the configuration has their hash. */
  settings: unread<EnclaveSettings>(),
  /** SHA-256 of the TLS key's SubjectPublicKeyInfo; zeros where there is no TLS. */
  tlsKeyHash: hex(32),
  bootId: hex(16),
  /**
   * Identifies the root secret, as in its backups: enclaves of one secret have the same. The quote need not cover it, since it comes over
   * a connection whose key the quote covers. Left out by enclaves of older releases.
   */
  commitment: optional(hex(32)),
  /** Where the settings have a log. */
  logs: optional(
    object({
      /** The origins that this enclave may write to, each once, the preferred one first. */
      own: list(string()),
      /** Verifier keys of all origins of the settings, in their order, so that witnesses can be told of them. */
      keys: list(string()),
    }),
  ),
})
export type AttestResponse = Infer<typeof attestResponse>

export const openSessionResponse = object({
  /** 32 bytes: the session secret. It goes into the cookie and nowhere else. */
  sid: hex(32),
  grant: checked(string(/./s), ({ length }) => length <= 4_096),
  keyId: hex(16),
  address: ethereum(20),
  /** When the grant ends, ISO 8601. */
  expiresAt: string(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
})
export type OpenSessionResponse = Infer<typeof openSessionResponse>

export const vaultResponse = object({
  keyId: hex(16),
  address: ethereum(20),
  /** 65 bytes. */
  publicKey: hex(65),
  /** 32 bytes: the hash of the policy. */
  policy: hex(32),
})
export type VaultResponse = Infer<typeof vaultResponse>

/** What one quote covers, of one boot of one enclave. */
const signedBatch = object({
  bootId: hex(16),
  sequence: natural,
  previous: hex(32),
  /** The leaf hashes, in their order: root and paths follow from them. */
  leaves: checked(list(hex(32)), ({ length }) => length <= 256),
  quote,
  eventLog,
})
export type SignedBatch = Infer<typeof signedBatch>

/** Why one item was not signed; the others of its call are not affected. */
const signItemError = either(
  object({
    error: literal(
      'invalid_request',
      'invalid_tx_metadata',
      'message_too_large',
      'invalid_message',
      'invalid_typed_data',
      'authorization_not_allowed',
      'digest_mismatch',
      'grant_invalid',
      'session_expired',
      'key_binding_mismatch',
      'quote_unavailable',
      /** Not of a source in the settings, wrongly signed, too old, or too far ahead. */
      'entropy_refused',
      /** This boot has signed something else with the sample. */
      'entropy_used',
      /** Too many samples to remember: none can be told from one that was used. */
      'entropy_memory_full',
      /** Call again with the text of the policy: the sample was not used. */
      'policy_unknown',
      /** Not a policy that this enclave understands, or one that wants a log, which it does not have. */
      'policy_not_supported',
    ),
  }),
  object({ error: literal('policy_refused'), details: policyRefusal }),
  /** Every approval is valid, but so many more are needed. */
  object({ error: literal('approvals_missing'), missing: natural }),
  /** `index` is that in the list. */
  object({
    error: literal('approval_invalid'),
    index: natural,
    reason: approvalReason,
  }),
)
export type SignItemError = Infer<typeof signItemError>

/** A statement of version 2 names what was signed by a hash, so it comes along. */
export type SignedStatement =
  | { statement: Statement }
  | {
      statement: StatementV2
      subject: Signed['subject']
      /** Of an off-chain kind. It is for the user, goes out once, and is kept by nobody. */
      opening?: Opening | undefined
    }

const signedStatement = {
  statement: unread<StatementV2>(),
  subject: optional(unread<Signed['subject']>()),
  opening: optional(unread<Opening>()),
}

/** Which of the response's batches, and where in it. */
const placed = { batch: natural, leafIndex: natural }
export type Placed = { batch: number; leafIndex: number }

export type SignItemResult = SignItemError | (SignedStatement & Placed)

const batches = list(signedBatch)

/** Results in the order of the items. Items of one call may fall into several batches. */
export const signItemsResponse = object({
  batches,
  results: list(either(object({ ...signedStatement, ...placed }), signItemError) as Schema<SignItemResult>),
})
export type SignItemsResponse = Infer<typeof signItemsResponse>

/** What an enclave has appended to its log, up to a checkpoint that it signed. */
const appendedEntries = {
  origin: string(),
  /** The index of the first of the entries. */
  from: natural,
  /** All from there up to the size of the checkpoint. */
  entries: list(hex(57)),
  /** A note with the signature of the log's key. */
  checkpoint: string(),
}
export type AppendedEntries = { origin: string; from: number; entries: readonly string[]; checkpoint: string }

/** Where the settings have a log: statements come by `release` alone, and here is only where their leaves are. */
export const loggedItemsResponse = object({
  batches,
  results: list(either(object(placed), signItemError)),
  /** Up to a checkpoint that covers all of the batches. Null where nothing was signed. */
  log: nullable(object(appendedEntries)),
})
export type LoggedItemsResponse = Infer<typeof loggedItemsResponse>

export const logResponse = object({
  bootId: hex(16),
  /** The newest that this boot has started; null before the first. */
  log: nullable(
    object({
      ...appendedEntries,
      /** Whether a quorum cosigned the entry of the boot. Until then nothing is signed. */
      isOpen: boolean,
    }),
  ),
})
export type LogResponse = Infer<typeof logResponse>

export const releaseResponse = object({
  /** In the order of the leaves. Null for one that is not known, erased, not covered, or of another coordinator. */
  statements: list(nullable(object(signedStatement) as Schema<SignedStatement>)),
})
export type ReleaseResponse = Infer<typeof releaseResponse>

/** The body of a refused call. */
export type EnclaveErrorBody = { error: { code: string; message: string } }
