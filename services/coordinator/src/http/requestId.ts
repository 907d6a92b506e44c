import type { Random } from '../system.ts'

/** A caller's own id is taken over only where it cannot pretend to be anything else in a log or header. */
export function toRequestId(header: string | undefined, random: Random): string {
  if (header !== undefined && /^[A-Za-z0-9._-]{1,64}$/.test(header)) return header
  return Buffer.from(random(16)).toString('hex')
}
