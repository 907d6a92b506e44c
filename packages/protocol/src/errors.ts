/** What a `ServiceError` may carry beside its code and message. */
export type ServiceErrorOptions = { details?: string; cause?: unknown }

/**
 * The base of every error that Countersign throws on purpose. `code` is stable and public; `message` stays the short text
 * alone, because the specification fixes some messages to the letter; what varies goes into `details`.
 *
 * @example
 * if (error instanceof ServiceError && error.code === 'invalid_hex') …
 */
export class ServiceError<Code extends string = string> extends Error {
  override name = 'ServiceError'
  readonly code: Code
  readonly details: string | undefined
  /** Where `docs/errors.md` says what to do about this code. */
  readonly docsPath: string

  constructor(code: Code, message: string, options: ServiceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options.details
    this.docsPath = `/errors#${code}`
  }
}
