import { ServiceError } from '@countersign/protocol'

/** Returns the part of an error that may be logged: its code and our own messages. Other messages may contain secrets. */
export function toReason(error: unknown): { code: string; reason?: string } {
  if (error instanceof ServiceError) return { code: error.code, reason: error.details ?? error.message }
  return { code: error instanceof Error ? error.name : typeof error }
}
