import { isHex, isPlainObject } from '@countersign/protocol'
import type { PckPlatform } from './tdx/pckCertificate.ts'

/**
 * A machine by an identity that Intel certifies, as lower-case hex. `ppid` names a processor, `platformInstanceId` a machine of
 * several, `fmspc` only a kind of machine. The two of 16 bytes look alike, so that each says which it is.
 */
export type TdPlatform = { fmspc: string } | { ppid: string } | { platformInstanceId: string }

/** In bytes. */
const LENGTHS: Readonly<Record<string, number>> = { fmspc: 6, ppid: 16, platformInstanceId: 16 }

/** Exactly one identity: of two it would not be plain whether either or both must match. */
export function isTdPlatform(value: unknown): value is TdPlatform {
  if (!isPlainObject(value)) return false
  const [entry, ...rest] = Object.entries(value)
  if (entry === undefined || rest.length > 0) return false
  const [name, id] = entry
  return Object.hasOwn(LENGTHS, name) && isHex(id, LENGTHS[name] ?? 0)
}

/** The first of those listed that a genuine platform is. */
export function findPlatform(platform: PckPlatform, listed: readonly TdPlatform[]): TdPlatform | undefined {
  return listed
    .filter(isTdPlatform)
    .find((identity) => Object.entries(identity).every(([name, id]) => platform[name as keyof PckPlatform] === id))
}
