import { hash, timingSafeEqual } from 'node:crypto'
import { type Hex, preimages, toCanonicalJson, toPreimage } from '@countersign/protocol/core'
import { hmacSha256 } from '@countersign/root-secret/sealing'

/** What the enclave attests to itself about a session: this owner, with this session secret, may use this key until then. */
export type Grant = {
  owner: string
  /** SHA-256 of the session secret. */
  sidHash: string
  keyId: string
  address: Hex
  /** Milliseconds since 1970. */
  exp: number
}

/** The key that authenticates grants, and the grants that it has authenticated, because a session signs with the same grant many times. */
export type Grants = { grantKey: Uint8Array; grants: Map<string, Grant> }

export type GrantFault = 'grant_invalid' | 'session_expired'

const MAX_GRANT_CHARACTERS = 1024
const MAC_BYTES = 32
const MAX_REMEMBERED = 4_096

/** `payload.mac`, both base64url: canonical JSON, and HMAC-SHA-256 over tag ‖ 0x00 ‖ payload. */
export function createGrant(grantKey: Uint8Array, grant: Grant): string {
  const payload = Buffer.from(toCanonicalJson(grant))
  return `${payload.toString('base64url')}.${toMac(grantKey, payload).toString('base64url')}`
}

/** Reads a grant that this root secret made, for this session secret, and that has not expired. */
export function checkGrant(
  { grantKey, grants }: Grants,
  { grant: text, sid, now }: { grant: string; sid: string; now: number },
): Grant | { fault: GrantFault } {
  const known = grants.get(text)
  const grant = known ?? authenticate(grantKey, text)
  if (grant === undefined) return { fault: 'grant_invalid' }
  if (known === undefined) {
    if (grants.size >= MAX_REMEMBERED) grants.clear()
    grants.set(text, grant)
  }
  const sidHash = hash('sha256', Buffer.from(sid, 'hex'), 'buffer')
  if (!timingSafeEqual(sidHash, Buffer.from(grant.sidHash, 'hex'))) return { fault: 'grant_invalid' }
  if (grant.exp <= now) return { fault: 'session_expired' }
  return grant
}

/** Undefined for a grant that this key did not make. */
function authenticate(grantKey: Uint8Array, grant: string): Grant | undefined {
  const [payloadText, macText, ...rest] = grant.length <= MAX_GRANT_CHARACTERS ? grant.split('.') : []
  if (payloadText === undefined || macText === undefined || rest.length > 0) return undefined
  const payload = Buffer.from(payloadText, 'base64url')
  const mac = Buffer.from(macText, 'base64url')
  // base64url decoders skip what they do not know; only the one spelling passes.
  const isSpeltRight = payload.toString('base64url') === payloadText && mac.toString('base64url') === macText
  if (!isSpeltRight || mac.length !== MAC_BYTES || !timingSafeEqual(mac, toMac(grantKey, payload))) return undefined
  // Authenticated, so it is what createGrant wrote.
  return JSON.parse(payload.toString()) as Grant
}

/** Of the 32 bytes that a session secret's hex spells. */
export function toSidHash(sid: string): string {
  return hash('sha256', Buffer.from(sid, 'hex'), 'hex')
}

function toMac(grantKey: Uint8Array, payload: Uint8Array): Buffer {
  return hmacSha256(grantKey, toPreimage(preimages.grant, { content: payload }))
}
