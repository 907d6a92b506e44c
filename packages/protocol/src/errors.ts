import type { SignResult } from './signResult.ts'

/** Optional members of a `ServiceError`. */
export type ServiceErrorOptions = {
  details?: string | undefined
  cause?: unknown
  /** The HTTP status, if the service reported the failure. */
  status?: number | undefined
  /** Whether the same call may succeed later. */
  retryable?: boolean | undefined
  /** The signatures made before the failure. Their proofs become public anyway. */
  signed?: SignResult | undefined
}

/**
 * The base of all errors that Countersign throws on purpose. `code` is stable and public. The specification fixes some messages exactly,
 * so `message` is constant and variable parts go into `details`.
 *
 * @example
 * if (error instanceof ServiceError && error.code === 'invalid_hex') …
 */
export class ServiceError<Code extends string = string> extends Error {
  override name = 'ServiceError'
  // Declared only: the constructor sets them all.
  declare readonly code: Code
  declare readonly details: string | undefined
  declare readonly status: number | undefined
  declare readonly retryable: boolean | undefined
  declare readonly signed: SignResult | undefined
  /** Only of `budget_exceeded` of a service: what the budget still allows, in decimal. */
  declare readonly left?: string | undefined
  /** The section of `docs/errors.md` for this code. */
  declare readonly docsPath: string
  /** The same page, as an absolute URL. */
  declare readonly docsUrl: string

  constructor(code: Code, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause ? options : undefined)
    this.code = code
    this.details = options.details
    this.status = options.status
    this.retryable = options.retryable
    this.signed = options.signed
    this.docsPath = `/errors#${code}`
    this.docsUrl = `https://github.com/countersign/countersign/blob/main/docs/errors.md#${code}`
  }
}

/** This package's error codes, each with advice for the caller. */
export type ProtocolErrorCode =
  /** Fix the call: the text is not lower-case hex with an even number of digits. */
  | 'invalid_hex'
  /** Fix the call: a byte string in a preimage has the wrong length. */
  | 'invalid_length'
  /** Fix the call: a number in a preimage is out of range. */
  | 'invalid_integer'
  /** Distrust the sender: the body is larger than allowed. */
  | 'body_too_large'
  /** Distrust the sender: the bytes are not JSON in UTF-8. */
  | 'invalid_json'
  /** Fix the call: a parameter has the wrong form. */
  | 'invalid_request'
  /** Fix the call: JSON cannot represent the value without loss. */
  | 'not_canonicalizable'
  /** Distrust the bytes: they are not canonical JSON. */
  | 'json_not_canonical'
  /** Distrust the statement: a member is missing, unknown or malformed. */
  | 'statement_malformed'
  /** Distrust the opening: a member is missing, unknown or malformed, or both halves are withheld. */
  | 'opening_malformed'
  /** Distrust the path: it doesn't fit this index in a tree of this size. */
  | 'inclusion_malformed'
  /** Fix the configuration, or distrust the receipt that carries it. */
  | 'enclave_config_malformed'
  /** Fix the request: these fields don't describe a valid transaction. */
  | 'invalid_tx_metadata'
  /** Fix the request: the content is longer than the limit in `details`. */
  | 'message_too_large'
  /** Fix the request: the message is not hex with an even number of digits. */
  | 'invalid_message'
  /** Fix the request: the typed data is ambiguous or invalid by EIP-712. */
  | 'invalid_typed_data'
  /** Ask the operator: the enclave delegates accounts only to code on its list, and only on one chain at a time. */
  | 'authorization_not_allowed'
  /** Distrust the signature: it is not 65 bytes r ‖ s ‖ v in range with a low s, or no key matches it. */
  | 'signature_malformed'
  /** Distrust the key: it is not an uncompressed point of secp256k1. */
  | 'public_key_malformed'
  /** Distrust the log: the contract never writes such an event. */
  | 'event_malformed'
