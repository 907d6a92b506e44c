import { ServiceError } from '@countersign/protocol'
import { VerifierError } from '@countersign/verify'
import type { PlainError } from './messages.ts'

export function toPlainError(error: unknown): PlainError {
  if (error instanceof ServiceError) {
    const { code, message, details, status } = error
    return { code, message, details, status }
  }
  return { code: 'internal', message: 'The verifier failed.', details: String(error), status: undefined }
}

export function toServiceError({ code, message, details, status }: PlainError): ServiceError {
  return new ServiceError(code, message, { details, status })
}

/** What `fetchBytes` rejects with. */
export function toFetchError({ message, details, status }: PlainError): VerifierError {
  return new VerifierError('fetch_failed', message, { details, status })
}
