import { hash, timingSafeEqual } from 'node:crypto'
import { type Hex, preimages, toCanonicalJson, toPreimage } from '@countersign/protocol/core'
import { hmacSha256 } from '@countersign/root-secret/sealing'
import type { Identity } from '../ports.ts'

/** A session as the enclave attests it to itself: this owner, with this session secret, may use this key until `exp`. */
export type Grant = {
  owner: string
  identity: Identity
  /** If not null, each request needs a stamp of this key. */
  clientKey: string | null
  /** SHA-256 of the session secret. */
  sidHash: string
  keyId: string
  address: Hex
  /** Milliseconds since 1970. */
  exp: number
}

/** The key that authenticates grants, and a cache of authenticated grants: a session signs many times with the same one. */
export type Grants = { grantKey: Uint8Array; grants: Map<string, Grant> }

export type GrantFault = 'grant_invalid' | 'session_expired'

/** An identity has up to a thousand characters. */
const MAX_GRANT_CHARACTERS = 3_072
const MAC_BYTES = 32
const MAX_REMEMBERED = 4_096

/** `payload.mac`, both base64url: canonical JSON, and HMAC-SHA-256 over tag ‖ 0x00 ‖ payload. */
export function createGrant(grantKey: Uint8Array, grant: Grant): string {
  const payload = Buffer.from(toCanonicalJson(grant))
  return `${payload.toString('base64url')}.${toMac(grantKey, payload).toString('base64url')}`
}

/** Reads a grant. Throws unless this root secret made it, for this session secret, and it has not expired. */
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

/** Returns undefined for a grant that this key did not make. */
function authenticate(grantKey: Uint8Array, grant: string): Grant | undefined {
  const [payloadText, macText, ...rest] = grant.length <= MAX_GRANT_CHARACTERS ? grant.split('.') : []
  if (payloadText === undefined || macText === undefined || rest.length > 0) return undefined
  const payload = Buffer.from(payloadText, 'base64url')
  const mac = Buffer.from(macText, 'base64url')
  // base64url decoders ignore unknown characters. Only the canonical spelling passes.
  const isSpeltRight = payload.toString('base64url') === payloadText && mac.toString('base64url') === macText
  if (!isSpeltRight || mac.length !== MAC_BYTES || !timingSafeEqual(mac, toMac(grantKey, payload))) return undefined
  // It is authentic, so it has the shape that `createGrant` wrote.
  return JSON.parse(payload.toString()) as Grant
}

/** Hashes the 32 bytes that the session secret's hex encodes. */
export function toSidHash(sid: string): string {
  return hash('sha256', Buffer.from(sid, 'hex'), 'hex')
}

function toMac(grantKey: Uint8Array, payload: Uint8Array): Buffer {
  return hmacSha256(grantKey, toPreimage(preimages.grant, { content: payload }))
}
