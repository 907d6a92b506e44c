import { ServiceError } from '@countersign/protocol'

/** What a log may say about a failure: codes and our own words; other messages could hold anything. */
export function toReason(error: unknown): { code: string; reason?: string } {
  if (error instanceof ServiceError) return { code: error.code, reason: error.details ?? error.message }
  return { code: error instanceof Error ? error.name : typeof error }
}
