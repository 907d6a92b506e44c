import { hashLogin, type OwnerIdentity, toHex, tokenSession } from '@countersign/protocol'
import { createError } from '../client/errors.ts'
import { REQUEST_TIMEOUT_MS, request } from '../client/request.ts'
import { deleteKeys, isSignOut, prepareRequest } from './createBoundSession.ts'
import { openKeyStore, type PendingLogin, type StoredKey } from './keyStore.ts'
import type { DirectSession, DirectSessionOptions } from './session.ts'

type PendingKey = StoredKey & { pending: PendingLogin }
type Claims = { iss?: unknown; aud?: unknown; sub?: unknown; exp?: unknown; nonce?: unknown; [name: string]: unknown }

/** How far the clock of this device may be ahead of the provider's. */
const EXPIRY_TOLERANCE_S = 600

export function createDirectSession(options: DirectSessionOptions): DirectSession {
  const { provider, issuer, clientId, authorizationUrl, tokenUrl } = options
  let resuming: Promise<void> | undefined

  const redirectUri = () => options.redirectUri ?? `${location.origin}/`

  /** The identity provider's answer in the page's address. */
  function readAnswer(): URLSearchParams {
    if (typeof location === 'undefined') return new URLSearchParams()
    return new URLSearchParams(tokenUrl === undefined ? location.hash.slice(1) : location.search)
  }

  /**
   * Whether the address has an answer to a sign-in that this page didn't start. Anyone who gets it and chose its nonce could sign in as the
   * user, so it must not stay where an app may pass it on. An app may have a `code` of its own on other pages.
   */
  function hasForeignAnswer(): boolean {
    if (typeof location === 'undefined') return false
    const { hash, search, origin, pathname } = location
    if ([hash.slice(1), search].some((text) => new URLSearchParams(text).has('id_token'))) return true
    const isReturn = new URL(redirectUri()).href === new URL(pathname, origin).href
    return tokenUrl !== undefined && isReturn && new URLSearchParams(search).has('code')
  }

  /** Completes a sign-in that has returned to this page, once. */
  async function resume(apiBaseUrl: string): Promise<void> {
    const answer = readAnswer()
    const state = answer.get('state')
    const key = state ? await openKeyStore(apiBaseUrl).takePending({ issuer, state }) : undefined
    if (key === undefined) {
      if (!hasForeignAnswer()) return
      showPage(location.href.replace(/[?#].*/, ''))
      throw failed('this page started no such sign-in in the last 10 minutes')
    }
    const { returnTo } = key.pending
    const error = answer.get('error')
    if (error === 'access_denied') return showPage(addOutcome(returnTo))
    showPage(returnTo)
    if (error !== null) throw failed(`the identity provider answered ${error}`)
    const idToken = tokenUrl === undefined ? answer.get('id_token') : await exchangeCode(answer, key.pending)
    await openSession(apiBaseUrl, key, idToken ?? '')
  }

  async function exchangeCode(answer: URLSearchParams, { codeVerifier }: PendingLogin): Promise<string | undefined> {
    const code = answer.get('code') ?? ''
    const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri(), client_id: clientId }
    const response = await fetch(tokenUrl as string, {
      method: 'POST',
      body: new URLSearchParams({ ...form, code_verifier: codeVerifier }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    }).catch((cause: unknown) => {
      throw failed('the identity provider cannot be reached', cause)
    })
    return (await response.json().catch(() => undefined))?.id_token
  }

  async function openSession(apiBaseUrl: string, key: PendingKey, idToken: string): Promise<void> {
    const { loginSecret, nonce } = key.pending
    const claims = readClaims(idToken)
    const audience = [claims.aud].flat()
    const isOurs = claims.iss === issuer && audience.length === 1 && audience[0] === clientId && claims.nonce === nonce
    const isCurrent = typeof claims.exp === 'number' && claims.exp > Date.now() / 1000 - EXPIRY_TOLERANCE_S
    if (!isOurs || !isCurrent) throw failed('the ID token is not for this sign-in')
    const { secret, expiresAt } = await request(
      { apiBaseUrl },
      {
        method: 'POST',
        path: `/auth/${encodeURIComponent(provider)}/token`,
        credentials: 'omit',
        body: { idToken, loginSecret, clientKey: key.publicKey },
        schema: tokenSession,
      },
    )
    const session = { secret, identity: toIdentity(claims) }
    await openKeyStore(apiBaseUrl).replaceSession({ ...key, untilMs: Date.parse(expiresAt), session })
  }

  async function findSession(apiBaseUrl: string): Promise<StoredKey['session']> {
    resuming ??= resume(apiBaseUrl)
    try {
      await resuming
    } catch (error) {
      // Reported once. The user can then sign in again.
      resuming = Promise.resolve()
      throw error
    }
    return (await openKeyStore(apiBaseUrl).list()).find(({ session }) => session)?.session
  }

  return {
    async prepare({ apiBaseUrl }, parameters) {
      // Public data needs no session.
      if (parameters.credentials === 'same-origin') return {}
      const keys = openKeyStore(apiBaseUrl)
      const isEnding = isSignOut(parameters)
      // A failed sign-in must not keep the user from signing out.
      const session = await findSession(apiBaseUrl).catch((error: unknown) => {
        if (!isEnding) throw error
        return undefined
      })
      if (isEnding) await deleteKeys(keys)
      const shared = {
        credentials: 'omit' as const,
        ...(session && { headers: { authorization: `Session ${session.secret}` } }),
      }
      return prepareRequest({ apiBaseUrl, shared, findKey: keys.find }, parameters)
    },

    async startLogin({ apiBaseUrl }) {
      const [state, loginSecret, codeVerifier] = [random(), random(), random()]
      const { pending } = await openKeyStore(apiBaseUrl).create((clientKey) => ({
        issuer,
        state: toHex(state),
        loginSecret: toHex(loginSecret),
        nonce: toBase64Url(hashLogin({ loginSecret, clientKey })),
        codeVerifier: toHex(codeVerifier),
        returnTo: location.href,
      }))
      const { nonce, codeVerifier: verifier } = pending as PendingLogin
      const challenge = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)))
      const url = new URL(authorizationUrl)
      const answer =
        tokenUrl === undefined
          ? { response_type: 'id_token', response_mode: 'fragment' }
          : { response_type: 'code', code_challenge: toBase64Url(challenge), code_challenge_method: 'S256' }
      const fixed = { client_id: clientId, redirect_uri: redirectUri(), scope: 'openid email profile', nonce }
      const members = { ...fixed, ...answer, state: toHex(state), prompt: 'select_account' }
      for (const [name, value] of Object.entries(members)) url.searchParams.set(name, value)
      return url.href
    },

    async readIdentity({ apiBaseUrl }) {
      // An app may pass its own configuration, which the client would change.
      return (await findSession(apiBaseUrl.replace(/\/+$/, '')))?.identity ?? null
    },
  }
}

/** Removes the answer from the address bar and from the history. Routers read the address when these events say so. */
function showPage(url: string): void {
  const event = { oldURL: location.href, newURL: url }
  history.replaceState(history.state, '', url)
  dispatchEvent(new PopStateEvent('popstate', { state: history.state }))
  dispatchEvent(new HashChangeEvent('hashchange', event))
}

/** As the service does after a cancelled sign-in. */
function addOutcome(returnTo: string): string {
  const url = new URL(returnTo)
  url.searchParams.set('sign_in', 'cancelled')
  return url.href
}

/** The claims of a token. The enclave verifies its signature. */
function readClaims(idToken: string): Claims {
  try {
    const [, payload = ''] = idToken.split('.')
    const text = atob(payload.replaceAll('-', '+').replaceAll('_', '/'))
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (one) => one.charCodeAt(0))))
  } catch (cause) {
    throw failed('the ID token is malformed', cause)
  }
}

/** As the enclave reads it for the owner of an address. */
function toIdentity({ iss, sub, email, email_verified }: Claims): OwnerIdentity {
  const isVerified = email_verified === true || email_verified === 'true'
  const isKnown = isVerified && typeof email === 'string' && /^[^\p{Cc}\p{Cs}]{1,254}$/u.test(email)
  return { issuer: String(iss), subject: String(sub), email: isKnown ? email : null }
}

function random(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(32))
}

function toBase64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

function failed(details: string, cause?: unknown) {
  return createError('sign_in_failed', 'the sign-in failed', { details, cause })
}
