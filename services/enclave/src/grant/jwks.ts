import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import {
  isBodyTooLarge,
  isPlainObject,
  parseStrictJson,
  readBounded,
  withinTimeLimit,
} from '@countersign/protocol/core'
import { EnclaveError } from '../errors.ts'
import type { Clock } from '../ports.ts'
import { idTokenInvalid } from './idTokenError.ts'
import type { Issuer } from './issuers.ts'

/** The platform's fetch, injected. */
export type Fetch = typeof globalThis.fetch

export type KeySource = {
  /**
   * Finds the issuer's key for a token header, in the form that jose accepts. Throws `id_token_invalid` if the header names no usable key,
   * and `issuer_unavailable` if the keys can't be fetched.
   */
  getKey(header: { alg?: string; kid?: string }): Promise<KeyObject>
  /** Fetches the keys now, and returns the older `Date` of the two answers. Throws `issuer_unavailable`, also if neither has one. */
  fetchDate(): Promise<number>
}

export type CreateKeySourceParameters = {
  issuer: Pick<Issuer, 'issuer' | 'jwksOrigin'>
  fetch: Fetch
  clock: Clock
  /** For discovery and keys together. */
  timeoutMs?: number
}

/** Why an issuer's keys can't be fetched: the `details` of `issuer_unavailable`. */
export type IssuerFault =
  | 'timeout'
  | 'unreachable'
  | 'status'
  | 'content_type'
  | 'size'
  | 'malformed'
  | 'issuer_mismatch'
  | 'jwks_origin'
  | 'too_many_keys'
  | 'date'

/** The accepted algorithms of ID tokens, each with its type of key (RFC 7518 §3, RFC 8037, RFC 9864). */
export const keyTypes: ReadonlyMap<string, string> = new Map([
  ['RS256', 'RSA'],
  ['RS384', 'RSA'],
  ['RS512', 'RSA'],
  ['PS256', 'RSA'],
  ['PS384', 'RSA'],
  ['PS512', 'RSA'],
  ['ES256', 'P-256'],
  ['ES384', 'P-384'],
  ['ES512', 'P-521'],
  ['EdDSA', 'Ed25519'],
  ['Ed25519', 'Ed25519'],
])

const FRESH_MS = 600_000
const USABLE_MS = 86_400_000
const REFETCH_INTERVAL_MS = 30_000
const MAX_ANSWER_LENGTH = 262_144
const MAX_KEYS = 32
const MIN_RSA_BITS = 2048

const EC_CURVES: ReadonlySet<unknown> = new Set(['P-256', 'P-384', 'P-521'])
/** RFC 7518 §6, RFC 8037 §2, RFC 9964 §3: a published key with any of these is private or symmetric, so anyone could sign with it. */
const SECRET_MEMBERS = ['d', 'k', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'priv']

type PublicKey = { key: KeyObject; type: string; alg: string | undefined }
type KeySet = ReadonlyMap<string, PublicKey>
type Fetched = { keys: KeySet; dateMs: number | undefined }

/**
 * The keys of one pinned issuer, fetched by the enclave itself. Cached for 10 minutes, or up to 24 hours while the issuer can't be reached.
 * An unknown `kid` fetches them again, at most every 30 seconds.
 *
 * @example
 * const { payload } = await compactVerify(idToken, createKeySource({ issuer, fetch, clock }).getKey)
 */
export function createKeySource(parameters: CreateKeySourceParameters): KeySource {
  const { issuer, fetch, clock, timeoutMs = 5000 } = parameters
  let cached: { keys: KeySet; fetchedAt: number } | undefined
  let attemptedAt: number | undefined
  let pending: Promise<Fetched> | undefined

  /** A clock that was set back makes no cache entry younger. */
  function isWithin(since: number | undefined, windowMs: number): boolean {
    if (since === undefined) return false
    const ageMs = clock.now() - since
    return ageMs >= 0 && ageMs < windowMs
  }

  async function load(): Promise<Fetched> {
    const startedAt = clock.now()
    attemptedAt = startedAt
    try {
      const fetched = await withinTimeLimit(timeoutMs, (signal) => fetchKeys({ issuer, fetch, signal }), {
        createError: () => unavailable('timeout'),
      })
      cached = { keys: fetched.keys, fetchedAt: startedAt }
      return fetched
    } finally {
      pending = undefined
    }
  }

  function fetchOnce(): Promise<Fetched> {
    pending ??= load()
    return pending
  }

  async function refetch(): Promise<KeySet> {
    return (await fetchOnce()).keys
  }

  async function getKeys(): Promise<KeySet> {
    if (cached && isWithin(cached.fetchedAt, FRESH_MS)) return cached.keys
    const earlier = cached && isWithin(cached.fetchedAt, USABLE_MS) ? cached.keys : undefined
    if (!earlier) return refetch()
    // While the issuer is down, don't let every sign-in wait for the time limit.
    if (!pending && isWithin(attemptedAt, REFETCH_INTERVAL_MS)) return earlier
    return refetch().catch(() => earlier)
  }

  async function getKey({ alg, kid }: { alg?: string; kid?: string }): Promise<KeyObject> {
    if (typeof kid !== 'string' || kid === '') throw idTokenInvalid('kid')
    const keys = await getKeys()
    let found = keys.get(kid)
    if (!found && (pending || !isWithin(attemptedAt, REFETCH_INTERVAL_MS))) {
      found = (await refetch().catch(() => keys)).get(kid)
    }
    if (!found) throw idTokenInvalid('kid')
    // A key serves only algorithms of its type, and only the one it was published for (RFC 7517 §4.4, RFC 8725 §3.1).
    if (alg === undefined || keyTypes.get(alg) !== found.type || (found.alg !== undefined && found.alg !== alg)) {
      throw idTokenInvalid('alg')
    }
    return found.key
  }

  return {
    getKey,
    async fetchDate() {
      const { dateMs } = await fetchOnce()
      if (dateMs === undefined) throw unavailable('date')
      return dateMs
    },
  }
}

/** An answer, with its `Date` if present. */
type Answer = { value: unknown; dateMs: number | undefined }
type FetchKeysParameters = { issuer: CreateKeySourceParameters['issuer']; fetch: Fetch; signal: AbortSignal }

/** OpenID Connect Discovery §4: the issuer's configuration, then the keys it points to. */
async function fetchKeys({ issuer, fetch, signal }: FetchKeysParameters): Promise<Fetched> {
  const configuration = await fetchJson(fetch, toDiscoveryUrl(issuer.issuer), signal)
  const keys = await fetchJson(fetch, parseJwksUri(configuration.value, issuer), signal)
  const dates = [configuration.dateMs, keys.dateMs]
  return {
    keys: parseKeySet(keys.value),
    dateMs: dates.includes(undefined) ? undefined : Math.min(...(dates as number[])),
  }
}

function toDiscoveryUrl(issuer: string): string {
  return `${issuer.endsWith('/') ? issuer.slice(0, -1) : issuer}/.well-known/openid-configuration`
}

/** The origin is pinned, so even the issuer's own configuration can't send the enclave elsewhere for keys. */
function parseJwksUri(configuration: unknown, { issuer, jwksOrigin }: FetchKeysParameters['issuer']): string {
  if (!isPlainObject(configuration)) throw unavailable('malformed')
  if (configuration.issuer !== issuer) throw unavailable('issuer_mismatch')
  const uri = configuration.jwks_uri
  if (typeof uri !== 'string' || !URL.canParse(uri)) throw unavailable('malformed')
  const { origin, username, password, href } = new URL(uri)
  if (origin !== jwksOrigin || username !== '' || password !== '') throw unavailable('jwks_origin')
  return href
}

function parseKeySet(answer: unknown): KeySet {
  if (!isPlainObject(answer) || !Array.isArray(answer.keys)) throw unavailable('malformed')
  if (answer.keys.length > MAX_KEYS) throw unavailable('too_many_keys')
  const keys = new Map<string, PublicKey>()
  const ambiguous = new Set<string>()
  for (const jwk of answer.keys) {
    const publicKey = isPlainObject(jwk) ? parseKey(jwk) : undefined
    if (!publicKey) continue
    if (keys.has(publicKey.kid)) ambiguous.add(publicKey.kid)
    keys.set(publicKey.kid, publicKey)
  }
  for (const kid of ambiguous) keys.delete(kid)
  return keys
}

/** Ignores keys for other uses and of unknown types, as RFC 7517 §5 requires. */
function parseKey(jwk: Record<string, unknown>): (PublicKey & { kid: string }) | undefined {
  const { kid, use, key_ops: operations, alg } = jwk
  if (typeof kid !== 'string' || kid === '') return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return undefined
  if (alg !== undefined && typeof alg !== 'string') return undefined
  if (SECRET_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return undefined
  const members = pickPublicMembers(jwk)
  if (!members) return undefined
  let key: KeyObject
  try {
    key = createPublicKey({ key: members, format: 'jwk' })
  } catch {
    return undefined
  }
  if (key.asymmetricKeyType !== 'rsa') return { kid, key, type: String(members.crv), alg }
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  // With exponent 1, a signature equals its message.
  return modulusLength >= MIN_RSA_BITS && publicExponent >= 3n ? { kid, key, type: 'RSA', alg } : undefined
}

function pickPublicMembers({ kty, crv, n, e, x, y }: Record<string, unknown>): JsonWebKey | undefined {
  if (kty === 'RSA' && typeof n === 'string' && typeof e === 'string') return { kty, n, e }
  if (kty === 'OKP' && crv === 'Ed25519' && typeof x === 'string') return { kty, crv, x }
  if (kty === 'EC' && typeof crv === 'string' && EC_CURVES.has(crv) && typeof x === 'string' && typeof y === 'string') {
    return { kty, crv, x, y }
  }
  return undefined
}

async function fetchJson(fetch: Fetch, url: string, signal: AbortSignal): Promise<Answer> {
  let body: Uint8Array
  let dateMs: number | undefined
  try {
    // A redirect would leave the pinned origin.
    const response = await fetch(url, { redirect: 'error', headers: { accept: 'application/json' }, signal })
    if (response.status !== 200) throw unavailable('status')
    if (!isJson(response.headers.get('content-type'))) throw unavailable('content_type')
    // Counted after decompression.
    body = await readBounded(response.body, MAX_ANSWER_LENGTH)
    dateMs = parseDate(response.headers.get('date'))
  } catch (error) {
    if (error instanceof EnclaveError) throw error
    throw isBodyTooLarge(error) ? unavailable('size') : unavailable('unreachable', error)
  }
  try {
    return { value: parseStrictJson(body, { maxLength: MAX_ANSWER_LENGTH }), dateMs }
  } catch {
    throw unavailable('malformed')
  }
}

/** RFC 9110 §5.6.7, only in the form that senders may use. Ignores `Age`, because caches rewrite both. */
function parseDate(text: string | null): number | undefined {
  const dateMs = Date.parse(text ?? '')
  return !Number.isNaN(dateMs) && dateMs >= 0 && new Date(dateMs).toUTCString() === text ? dateMs : undefined
}

function isJson(contentType: string | null): boolean {
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase()
  return mediaType === 'application/json' || mediaType === 'application/jwk-set+json'
}

function unavailable(fault: IssuerFault, cause?: unknown) {
  return new EnclaveError('issuer_unavailable', 'the keys of the issuer cannot be fetched', { details: fault, cause })
}
