import type { FetchBytesParameters, Outcome, Progress, VerifyRequest } from '@countersign/verify'

/*
 * What page and worker tell each other. The worker has no network of its own: it asks the page for bytes, so that all
 * requests of this page are made, bounded and seen in one place.
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

/** An error as it crosses: a copied `Error` would lose its code. */
export type PlainError = { code: string; message: string; details: string | undefined; status: number | undefined }
