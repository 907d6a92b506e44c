import { ServiceError } from '@countersign/protocol'
import {
  type FetchBytesParameters,
  type Outcome,
  type Progress,
  VerifierError,
  type VerifyRequest,
} from '@countersign/verify'

/*
 * Messages between page and worker. The worker has no network access: it asks the page for bytes, so that all requests are made and limited
 * in one place.
 */

export type ToWorker =
  | { type: 'verify'; request: VerifyRequest }
  | { type: 'fetched'; id: number; bytes: Uint8Array<ArrayBuffer> }
  | { type: 'fetch-failed'; id: number; error: PlainError }

export type FromWorker =
  | { type: 'progress'; progress: Progress }
  | { type: 'fetch'; id: number; parameters: FetchBytesParameters }
  | { type: 'done'; outcome: Outcome }
  | { type: 'failed'; error: PlainError }

/** An error in transit. A cloned `Error` would lose its code. */
type PlainError = { code: string; message: string; details: string | undefined; status: number | undefined }

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

export function toFetchError({ message, details, status }: PlainError): VerifierError {
  return new VerifierError('fetch_failed', message, { details, status })
}
