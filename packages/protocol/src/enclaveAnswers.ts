import { approvalReason } from './approvalReason.ts'
import type { EnclaveConfig } from './configHash.ts'
import type { Opening } from './opening.ts'
import { ownerOpening } from './owner.ts'
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

/* The enclave's answers to the calls in `enclave.ts`. The enclave imports only the types of this file. */

/** Any object from `JSON.parse`. The code that uses it checks its members. */
const unread = <Value>() => leaf<Value>((value) => typeof value === 'object' && value !== null && !Array.isArray(value))

/** Real quotes are 5 to 8 KiB. */
const quote = hexUpTo(65_536)
/** Receipts have the same limit. */
const eventLog = optional(checked(string(), ({ length }) => length <= 131_072))

/** A quote over `computeEnclaveAttestReportData({ tlsKeyHash, nonce, configHash })`. */
export const attestResponse = object({
  quote,
  eventLog,
  config: unread<EnclaveConfig>(),
  /** In full. The configuration has only their hash. */
  settings: unread<EnclaveSettings>(),
  /** SHA-256 of the TLS key's SubjectPublicKeyInfo; zeros where there is no TLS. */
  tlsKeyHash: hex(32),
  bootId: hex(16),
  /**
   * Identifies the root secret, as in its backups. Enclaves with the same secret have the same commitment. The quote need not cover it: the
   * quote covers the key of the connection. Enclaves of older releases leave it out.
   */
  commitment: optional(hex(32)),
  /** Present if the settings have a log. */
  logs: optional(
    object({
      /** The origins that this enclave may write to, each once, the preferred one first. */
      own: list(string()),
      /** The verifier key of each origin in the settings, in the same order, so that witnesses can be configured. */
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
  /** Opens the owner commitment of the address. */
  owner: ownerOpening,
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
  /** Opens the owner commitment of the address. */
  owner: ownerOpening,
})
export type VaultResponse = Infer<typeof vaultResponse>

const batchMembers = {
  bootId: hex(16),
  sequence: natural,
  previous: hex(32),
  /** The leaf hashes, in tree order. The receiver computes root and paths. */
  leaves: checked(list(hex(32)), ({ length }) => length <= 256),
}

/** A batch of statements from one boot of an enclave, before its quote. */
const openBatch = object(batchMembers)
export type OpenBatch = Infer<typeof openBatch>

/** The same with the quote that covers it. */
const signedBatch = object({ ...batchMembers, quote, eventLog })
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
      /** The session has a client key, and the request has no stamp. */
      'stamp_missing',
      /** The stamp is of another key or another request, or the session has no client key. */
      'stamp_invalid',
      /** The stamp is too old, or too far in the future. */
      'stamp_time',
      'quote_unavailable',
      /** From a source that is not in the settings, wrongly signed, too old, or too far in the future. */
      'entropy_refused',
      /** This boot has signed something else with the sample. */
      'entropy_used',
      /** The enclave's memory of used samples is full, so it can't tell a new sample from a used one. */
      'entropy_memory_full',
      /** Call again with the text of the policy: the sample was not used. */
      'policy_unknown',
      /** This enclave doesn't understand the policy, or the policy needs a log and the enclave has none. */
      'policy_not_supported',
      /** The witnesses' time is unknown or too old. Fetch a fresh cosignature and try again. */
      'budget_time',
      /** The log of the budgets isn't open here, or the policy's witnesses aren't asked here. */
      'budget_unavailable',
    ),
  }),
  object({ error: literal('policy_refused'), details: policyRefusal }),
  /** `budget` is an index in the policy, and `left` what it still allows. */
  object({ error: literal('budget_exceeded'), budget: natural, left: string(/^\d{1,78}$/) }),
  /** Every approval is valid, but `missing` more are needed. */
  object({ error: literal('approvals_missing'), missing: natural }),
  /** `index` is the position in the list of approvals. */
  object({
    error: literal('approval_invalid'),
    index: natural,
    reason: approvalReason,
  }),
)
export type SignItemError = Infer<typeof signItemError>

/** A statement of version 2 has only a hash of its subject, so the subject comes with it. */
export type SignedStatement =
  | { statement: Statement }
  | {
      statement: StatementV2
      subject: Signed['subject']
      /** Only for off-chain kinds. The service returns it to the user once and stores no copy. */
      opening?: Opening | undefined
    }

const signedStatement = {
  statement: unread<StatementV2>(),
  subject: optional(unread<Signed['subject']>()),
  opening: optional(unread<Opening>()),
}

/** The index of the batch in the response, and of the leaf in the batch. */
const placed = { batch: natural, leafIndex: natural }
export type LeafPosition = { batch: number; leafIndex: number }

export type SignItemResult = SignItemError | (SignedStatement & LeafPosition)

/** Results in the order of the items. Items of one call may fall into several batches. */
export const signItemsResponse = object({
  batches: list(signedBatch),
  results: list(either(object({ ...signedStatement, ...placed }), signItemError) as Schema<SignItemResult>),
})
export type SignItemsResponse = Infer<typeof signItemsResponse>

/** Entries that an enclave appended to its log, up to a checkpoint that it signed. */
const appendedEntries = {
  origin: string(),
  /** The index of the first entry. */
  from: natural,
  /** All entries from `from` up to the size of the checkpoint. */
  entries: list(hex(57)),
  /** The changes of the table whose roots are among the entries, in their order. */
  states: list(object({ row: natural, state: hexUpTo(364) })),
  /** A note with the signature of the log's key. */
  checkpoint: string(),
}
export type AppendedEntries = {
  origin: string
  from: number
  entries: readonly string[]
  states: readonly { row: number; state: string }[]
  checkpoint: string
}

/**
 * The response if the settings have a log. It arrives before the quotes and has only the positions of the leaves. `release` returns quotes
 * and statements.
 */
export const loggedItemsResponse = object({
  batches: list(openBatch),
  results: list(either(object(placed), signItemError)),
  /** A checkpoint that covers all batches. Null if every item failed. */
  log: nullable(object(appendedEntries)),
})
export type LoggedItemsResponse = Infer<typeof loggedItemsResponse>

export const logResponse = object({
  bootId: hex(16),
  /** The newest log that this boot started. Null before the first. */
  log: nullable(
    object({
      ...appendedEntries,
      /** Whether a quorum has cosigned the boot's entry. Until then, the enclave doesn't sign. */
      isOpen: boolean,
    }),
  ),
})
export type LogResponse = Infer<typeof logResponse>

/** The response arrives when the leaves have their quotes, or the quotes failed. */
export const releaseResponse = object({
  /** In the order of the leaves. Null if the leaf is unknown, erased, not covered by the checkpoint or a quote, or from another coordinator. */
  statements: list(nullable(object(signedStatement) as Schema<SignedStatement>)),
  /** The batches of these statements. */
  quotes: list(object({ sequence: natural, quote, eventLog })),
})
export type ReleaseResponse = Infer<typeof releaseResponse>

/** The body of an error response. */
export type EnclaveErrorBody = { error: { code: string; message: string } }
