import type { SignResult } from './signResult.ts'

/** What a `ServiceError` may carry beside its code and message. */
export type ServiceErrorOptions = {
  details?: string | undefined
  cause?: unknown
  /** Of the HTTP response, where the service reported the failure. */
  status?: number | undefined
  /** Whether the same call may succeed later. */
  retryable?: boolean | undefined
  /** What was signed before the failure: its proof becomes public all the same. */
  signed?: SignResult | undefined
}

/**
 * The base of every error that Countersign throws on purpose. `code` is stable and public; `message` is only the short
 * text, because the specification fixes some messages to the letter; what varies goes into `details`.
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
  /** Where `docs/errors.md` says what to do about this code. */
  declare readonly docsPath: string
  /** The same page, as an absolute URL. */
  declare readonly docsUrl: string

  constructor(code: Code, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : options)
    this.code = code
    this.details = options.details
    this.status = options.status
    this.retryable = options.retryable
    this.signed = options.signed
    this.docsPath = `/errors#${code}`
    this.docsUrl = `https://github.com/countersign/countersign/blob/main/docs/errors.md#${code}`
  }
}

/** The codes that this package throws. What each asks of the reader stands beside it. */
export type ProtocolErrorCode =
  /** Fix the call: the text is not lower-case hex of whole bytes. */
  | 'invalid_hex'
  /** Fix the call: a byte string does not have the length that its place in a preimage fixes. */
  | 'invalid_length'
  /** Fix the call: a number does not fit its place in a preimage. */
  | 'invalid_integer'
  /** Distrust the sender: the body does not end where the reader expects it to. */
  | 'body_too_large'
  /** Distrust the sender: the bytes are not JSON in UTF-8. */
  | 'invalid_json'
  /** Fix the call: a parameter has not the form that the request asks for. */
  | 'invalid_request'
  /** Fix the call: the value holds something that JSON cannot carry without loss. */
  | 'not_canonicalizable'
  /** Distrust the bytes: they are JSON in another spelling than the one that was hashed, or no JSON at all. */
  | 'json_not_canonical'
  /** Distrust the statement: a member is missing, foreign or misspelt. */
  | 'statement_malformed'
  /** Distrust the opening: a member is missing, foreign or misspelt, or it shows neither half. */
  | 'opening_malformed'
  /** Distrust the path: it cannot belong to this index in a tree of this size. */
  | 'inclusion_malformed'
  /** Fix the configuration, or distrust the receipt that carries it. */
  | 'enclave_config_malformed'
  /** Fix the request: the transaction cannot be built from these fields. */
  | 'invalid_tx_metadata'
  /** Fix the request: what is to be signed is longer than the limit that `details` names. */
  | 'message_too_large'
  /** Fix the request: the message is not hex of whole bytes. */
  | 'invalid_message'
  /** Fix the request: EIP-712 has no one reading of it. */
  | 'invalid_typed_data'
  /** Ask the operator: the enclave delegates accounts only to code on its list, and only on one chain at a time. */
  | 'authorization_not_allowed'
  /** Distrust the signature: it is not 65 bytes r ‖ s ‖ v in range with a low s, or no key can have made it. */
  | 'signature_malformed'
  /** Distrust the key: it is not an uncompressed point of secp256k1. */
  | 'public_key_malformed'
  /** Distrust the log: it is not an `AttestationPublished` event as the contract writes it. */
  | 'event_malformed'
