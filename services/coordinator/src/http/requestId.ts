import type { Random } from '../system.ts'

/** Accepts a caller's request id only if it can't be mistaken for other content in a log or header. */
export function toRequestId(header: string | undefined, random: Random): string {
  if (header !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(header)) return header
  return Buffer.from(random(16)).toString('hex')
}
