import type { VerifyEs256 } from '@countersign/policy/core'
import { MAX_STAMP_AGE_MS, STAMP_TOLERANCE_MS, type Stamp, toStampBytes } from '@countersign/protocol/core'
import type { Grant } from './grant.ts'

export type StampFault = 'stamp_missing' | 'stamp_invalid' | 'stamp_time'

type CheckStampParameters = {
  grant: Pick<Grant, 'clientKey'>
  stamp: Stamp | undefined
  /** What the stamp must be for. */
  request: Omit<Parameters<typeof toStampBytes>[0], 'issuedMs'>
  now: number
}

/**
 * Returns why the browser's key did not authorize this request. A stamp can be used again while it is valid: it yields the same content by
 * the same key, so retries, other enclaves and restarts need no memory of used ones.
 */
export function checkStamp(
  { verifyEs256 }: { verifyEs256: VerifyEs256 },
  { grant: { clientKey }, stamp, request, now }: CheckStampParameters,
): StampFault | undefined {
  // A stamp without a key to check it by would look like protection.
  if (clientKey === null) return stamp === undefined ? undefined : 'stamp_invalid'
  if (stamp === undefined) return 'stamp_missing'
  const { issuedMs, signature } = stamp
  if (issuedMs < now - MAX_STAMP_AGE_MS || issuedMs > now + STAMP_TOLERANCE_MS) return 'stamp_time'
  const bytes = toStampBytes({ ...request, issuedMs })
  return verifyEs256(Buffer.from(clientKey, 'hex'), Buffer.from(signature, 'hex'), bytes) ? undefined : 'stamp_invalid'
}
