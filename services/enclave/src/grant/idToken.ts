import { timingSafeEqual } from 'node:crypto'
import {
  hashLogin,
  isPlainObject,
  parseStrictJson,
  ServiceError,
  type StrictJsonErrorCode,
} from '@countersign/protocol/core'
import { compactVerify, errors } from 'jose'
import { EnclaveError } from '../errors.ts'
import type { IdTokenVerifier } from '../ports.ts'
import type { Time } from '../time/time.ts'
import { idTokenInvalid } from './idTokenError.ts'
import type { Issuer } from './issuers.ts'
import { createKeySource, type Fetch, type KeySource, keyTypes } from './jwks.ts'

export type CreateIdTokenVerifierParameters = {
  issuers: readonly Issuer[]
  fetch: Fetch
  /** An enclave doesn't remember tokens from before its boot. */
  time: Pick<Time, 'now' | 'bootedAt' | 'raise'>
  /** The time limit for fetching an issuer's keys. */
  timeoutMs?: number
}

/** The largest accepted difference between the issuer's clock and ours. */
const SKEW_MS = 5000
const MAX_TOKEN_LENGTH = 16_384
const MAX_AGE_MS = 600_000
const LOGIN_SECRET_LENGTH = 32

/** Members with which a token could choose its own key or how it is parsed (RFC 7515 §4.1, RFC 7797 §3). */
const FORBIDDEN_HEADER_MEMBERS = ['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64']

type Members = Record<string, unknown>
type PinnedIssuer = { audiences: string[]; keySource: KeySource }

/**
 * Verifies ID tokens by OpenID Connect Core §3.1.3.7 and RFC 8725, each once per boot. The token comes through the untrusted coordinator:
 * until the signature is verified, an attacker may have written all of it.
 *
 * @example
 * const { issuer, subject } = await createIdTokenVerifier({ issuers, fetch, time }).verify({ idToken, loginSecret })
 */
export function createIdTokenVerifier(parameters: CreateIdTokenVerifierParameters): IdTokenVerifier & {
  /** Fetches the keys of every issuer. Returns the oldest `Date` of all answers. Throws `issuer_unavailable` if none answers. */
  fetchDate(): Promise<number>
} {
  const { issuers, fetch, time, timeoutMs } = parameters
  const pinned = new Map<string, PinnedIssuer>()
  for (const issuer of issuers) {
    const earlier = pinned.get(issuer.issuer)
    if (earlier) earlier.audiences.push(issuer.audience)
    else {
      const keySource = createKeySource({
        issuer,
        fetch,
        clock: time,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
      })
      pinned.set(issuer.issuer, { audiences: [issuer.audience], keySource })
    }
  }
  const usedNonces = createUsedNonces()

  return {
    async fetchDate() {
      const asked = await Promise.allSettled([...pinned.values()].map(({ keySource }) => keySource.fetchDate()))
      const dates = asked.filter((answer) => answer.status === 'fulfilled').map(({ value }) => value)
      const [failure] = asked.filter((answer) => answer.status === 'rejected')
      // One issuer that is down must not lock out the users of others. Without its answer the oldest date can only be later.
      if (dates.length === 0) throw failure?.reason
      return Math.min(...dates)
    },

    async verify({ idToken, loginSecret, clientKey }) {
      const bootedAt = time.bootedAt()
      if (loginSecret.length !== LOGIN_SECRET_LENGTH) throw idTokenInvalid('login_secret')
      const nonce = Buffer.from(hashLogin({ loginSecret, clientKey })).toString('base64url')
      const { header, claims } = parseToken(idToken)
      assertHeader(header)
      const { iss } = claims
      const issuer = typeof iss === 'string' ? pinned.get(iss) : undefined
      // Select the issuer before reading any key: the keys of one issuer say nothing about the users of another.
      if (typeof iss !== 'string' || !issuer) throw idTokenInvalid('iss')
      await verifySignature(idToken, issuer.keySource)

      // No `await` from here on, so of two calls with the same token exactly one finds its nonce unused.
      const now = time.now()
      assertAudience(claims, issuer.audiences)
      const issuedAt = assertTimes(claims, { now, bootedAt })
      const { sub } = claims
      // OpenID Connect Core §2: at most 255 ASCII characters.
      if (typeof sub !== 'string' || !/^[\x20-\x7e]{1,255}$/.test(sub)) throw idTokenInvalid('sub')
      if (!isSameNonce(claims.nonce, nonce)) throw idTokenInvalid('nonce')
      usedNonces.use({ nonce, issuedAt, now })
      // At most the skew ahead, so it is never rejected.
      time.raise(issuedAt)
      return { issuer: iss, subject: sub, email: readEmail(claims), issuedAt: Math.min(issuedAt, now) }
    },
  }
}

function parseToken(idToken: string): { header: Members; claims: Members } {
  if (typeof idToken !== 'string') throw idTokenInvalid('malformed')
  if (idToken.length > MAX_TOKEN_LENGTH) throw idTokenInvalid('size')
  const parts = idToken.split('.').map(parsePart)
  const [header, claims, signature] = parts
  if (!header || !claims || !signature || parts.length !== 3) throw idTokenInvalid('malformed')
  return { header: parseObject(header), claims: parseObject(claims) }
}

/** Accepts only one spelling of a token: no padding, no other alphabet, no stray bits at the end. */
function parsePart(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64url')
  if (text === '' || bytes.toString('base64url') !== text) throw idTokenInvalid('malformed')
  return bytes
}

function parseObject(bytes: Uint8Array): Members {
  let value: unknown
  try {
    value = parseStrictJson(bytes)
  } catch (error) {
    const code: StrictJsonErrorCode = 'json_duplicate_member'
    throw idTokenInvalid(error instanceof ServiceError && error.code === code ? 'duplicate' : 'malformed')
  }
  if (!isPlainObject(value)) throw idTokenInvalid('malformed')
  return value
}

function assertHeader(header: Members): void {
  if (FORBIDDEN_HEADER_MEMBERS.some((name) => Object.hasOwn(header, name))) throw idTokenInvalid('header')
  // RFC 8725 §3.11: a token with another purpose, such as an access token, has another `typ`.
  if (header.typ !== undefined && header.typ !== 'JWT') throw idTokenInvalid('typ')
  if (typeof header.alg !== 'string' || !keyTypes.has(header.alg)) throw idTokenInvalid('alg')
}

async function verifySignature(idToken: string, keySource: KeySource): Promise<void> {
  try {
    await compactVerify(idToken, keySource.getKey, { algorithms: [...keyTypes.keys()] })
  } catch (error) {
    if (error instanceof EnclaveError) throw error
    throw idTokenInvalid(error instanceof errors.JWSSignatureVerificationFailed ? 'signature' : 'malformed')
  }
}

/** OpenID Connect Core §3.1.3.7, steps 3 to 5. */
function assertAudience({ aud, azp }: Members, audiences: readonly string[]): void {
  const named: unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!named.every((audience) => typeof audience === 'string')) throw idTokenInvalid('aud')
  const ours: unknown[] = audiences.filter((audience) => named.includes(audience))
  if (ours.length === 0) throw idTokenInvalid('aud')
  // With several audiences, `azp` names the one that the user signed in to.
  if (azp === undefined ? named.length > 1 : !ours.includes(azp)) throw idTokenInvalid('azp')
}

/** Returns the time of issue in milliseconds. */
function assertTimes(claims: Members, { now, bootedAt }: { now: number; bootedAt: number }): number {
  const exp = toMilliseconds(claims.exp)
  if (exp === undefined || now >= exp + SKEW_MS) throw idTokenInvalid('exp')
  const iat = toMilliseconds(claims.iat)
  if (iat === undefined || iat > now + SKEW_MS || now - iat > MAX_AGE_MS) throw idTokenInvalid('iat')
  // An earlier boot may have accepted this token, and its memory is lost. No tolerance, because it would allow a second use.
  if (iat < bootedAt) throw idTokenInvalid('iat')
  if (claims.nbf !== undefined) {
    const nbf = toMilliseconds(claims.nbf)
    if (nbf === undefined || nbf > now + SKEW_MS) throw idTokenInvalid('nbf')
  }
  return iat
}

/** Whole seconds since 1970, as issuers write them. RFC 7519 §2 allows fractions, but no issuer of ID tokens needs them. */
function toMilliseconds(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value * 1000 : undefined
}

/** Null unless the issuer has verified the address. Apple writes `"true"`. RFC 5321 §4.5.3.1 allows 254 characters. */
function readEmail({ email, email_verified: isVerified }: Members): string | null {
  if (isVerified !== true && isVerified !== 'true') return null
  return typeof email === 'string' && /^[^\p{Cc}\p{Cs}]{1,254}$/u.test(email) ? email : null
}

function isSameNonce(claim: unknown, nonce: string): boolean {
  if (typeof claim !== 'string') return false
  const left = Buffer.from(claim)
  const right = Buffer.from(nonce)
  return left.length === right.length && timingSafeEqual(left, right)
}

type UsedNonces = { use(parameters: { nonce: string; issuedAt: number; now: number }): void }

/** Remembers a nonce for as long as a token with it could be accepted. */
function createUsedNonces(): UsedNonces {
  const issuedAtByNonce = new Map<string, number>()
  let forgottenUntil = Number.NEGATIVE_INFINITY

  return {
    use({ nonce, issuedAt, now }) {
      // In the order of use. A recent nonce keeps later ones in memory, for ten minutes and the skew at most.
      for (const [earlier, earlierIssuedAt] of issuedAtByNonce) {
        if (now - earlierIssuedAt <= MAX_AGE_MS) break
        issuedAtByNonce.delete(earlier)
        forgottenUntil = Math.max(forgottenUntil, earlierIssuedAt)
      }
      if (issuedAtByNonce.has(nonce)) throw new EnclaveError('id_token_replayed', 'the ID token was used before')
      // It was too old when that time was forgotten, so it is too old now, even if the clock was set back since.
      if (issuedAt <= forgottenUntil) throw idTokenInvalid('iat')
      issuedAtByNonce.set(nonce, issuedAt)
    },
  }
}
