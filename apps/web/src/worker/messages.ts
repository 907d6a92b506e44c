import type { VerificationErrorCode } from './errors.ts'
import type { FetchBytesParameters } from './fetchBytes.ts'
import type { Verification, VerificationRequest } from './verifySubject.ts'

/*
 * What page and worker tell each other. The worker has no network of its own: it asks the page for bytes, so that all
 * requests of this page are made, bounded and seen in one place.
 */

export type ToWorker =
  | { type: 'verify'; request: VerificationRequest }
  | { type: 'fetched'; id: number; bytes: Uint8Array<ArrayBuffer> }
  | { type: 'fetch-failed'; id: number; message: string }

export type FromWorker =
  | { type: 'progress'; text: string }
  | { type: 'fetch'; id: number; parameters: FetchBytesParameters }
  | { type: 'done'; verification: Verification }
  | { type: 'failed'; code: VerificationErrorCode; message: string }
