import { hash } from 'node:crypto'
import {
  type EndpointRequest,
  type EndpointResponse,
  hashLogin,
  isPlainObject,
  MAX_RETURN_TO_LENGTH,
  type OpenSessionRequest,
} from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError, invalidAnswer, toPublicCode } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { Login } from '../store/logins.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock, Random } from '../system.ts'
import type { DirectProvider, IdentityProvider } from './oidc.ts'
import { hashSid } from './session.ts'
import { type ProvisionWalletDeps, provisionWallet } from './wallet.ts'

/** Time limit for a sign-in. */
export const LOGIN_TTL_MS = 600_000

/** The OpenID Connect nonce, which binds an ID token to the browser with the login secret. The enclave computes it, too. */
function toLoginNonce(loginSecret: Uint8Array, clientKey: string | undefined): string {
  return Buffer.from(hashLogin({ loginSecret, clientKey })).toString('base64url')
}

/** The database stores only this hash of a state. */
function hashState(state: string): string {
  return hash('sha256', state, 'hex')
}

/** Part of the cookie's name, so that sign-ins in two tabs don't overwrite each other. */
function toLoginId(stateHash: string): string {
  return stateHash.slice(0, 16)
}

type StartLoginDeps = { store: Pick<Store, 'createLogin'>; clock: Clock; random: Random }
type StartLoginParameters = {
  providerId: string
  provider: IdentityProvider
  returnTo: string
  /** Whether the provider must ask for the account. */
  mustChoose: boolean
  /** The browser's key, if the session is to have one. */
  clientKey: string | undefined
}

/**
 * `GET /auth/:provider`. The login secret stays in the browser's cookie. The provider signs its hash, so an ID token is only valid together
 * with this browser.
 */
export async function startLogin(
  deps: StartLoginDeps,
  { providerId, provider, returnTo, mustChoose, clientKey }: StartLoginParameters,
): Promise<{ id: string; loginSecret: string; location: URL }> {
  const loginSecret = deps.random(32)
  const state = Buffer.from(deps.random(32)).toString('base64url')
  const codeVerifier = Buffer.from(deps.random(32)).toString('base64url')
  const nonce = toLoginNonce(loginSecret, clientKey)
  const stateHash = hashState(state)
  const id = toLoginId(stateHash)
  // Runs before the login is stored, so an unreachable provider leaves no rows.
  const location = await provider.start({ state, nonce, codeVerifier, mustChoose })
  const expiresAt = deps.clock.now() + LOGIN_TTL_MS
  const login = { id, provider: providerId, stateHash, codeVerifier, nonce, clientKey, returnTo, expiresAt }
  await deps.store.createLogin(login)
  return { id, loginSecret: Buffer.from(loginSecret).toString('hex'), location }
}

export type FinishLoginDeps = ProvisionWalletDeps & {
  store: Pick<Store, 'consumeLogin' | 'upsertUser' | 'createSession' | 'deleteSession'>
  enclave: Pick<KeyEnclave, 'openSession'>
  clock: Clock
  log: Log
  sessionTtlMs: number
  allowedOrigins: readonly string[]
}

type FinishLoginParameters = {
  providerId: string
  provider: IdentityProvider
  callbackUrl: URL
  state: string
  /** From the cookie named after this state. */
  loginSecret: string
  earlierSid: string | undefined
  /** Called with the page to return to, once it is known. Failures return there, too. */
  onReturnTo(returnTo: string): void
  requestId: string
}

type FinishLoginReturnType = {
  /** Undefined if the user cancelled. */
  cookie: { sid: string; ttlMs: number } | undefined
  returnTo: string
}

/** Returns the id in the name of a state's cookie, or undefined for a malformed state. */
export function toStateId(state: string | undefined): string | undefined {
  return state !== undefined && /^[A-Za-z0-9_-]{43}$/.test(state) ? toLoginId(hashState(state)) : undefined
}

/**
 * `GET /auth/:provider/callback`: deletes the stored login, exchanges the code, and makes the enclave open a session from the ID token and
 * the login secret. The session secret is new, so a cookie that was planted before the sign-in is useless.
 */
export async function finishLogin(
  deps: FinishLoginDeps,
  parameters: FinishLoginParameters,
): Promise<FinishLoginReturnType> {
  const { provider, callbackUrl, state, loginSecret, earlierSid } = parameters
  const login = await consumeLogin(deps, parameters)
  const { codeVerifier, nonce, clientKey } = login
  const returnTo = checkReturnTo(deps.allowedOrigins, login)
  parameters.onReturnTo(returnTo)
  const answer = await provider.finish({ callbackUrl, state, nonce, codeVerifier })
  if (answer === 'cancelled') return { cookie: undefined, returnTo: addOutcome(returnTo, 'cancelled') }
  const { idToken, issuer, subject, email, name } = answer
  if (email === '') throw new CoordinatorError('oauth_exchange_failed', 'the provider gave no e-mail address')
  const opened = await openSession(deps, {
    token: { idToken, loginSecret, ...(clientKey !== undefined && { clientKey }) },
    claims: { issuer, subject, email, name },
    earlierSid,
    requestId: parameters.requestId,
  })
  return { cookie: opened, returnTo }
}

type DirectLoginParameters = {
  provider: DirectProvider
  token: EndpointRequest<'POST /auth/:provider/token'>
  requestId: string
}

/** `POST /auth/:provider/token`: opens a session from an ID token that a page got itself. The enclave verifies the token. */
export async function finishDirectLogin(
  deps: FinishLoginDeps,
  { provider, token, requestId }: DirectLoginParameters,
): Promise<EndpointResponse<'POST /auth/:provider/token'>> {
  const { sub: subject, iss: issuer, email, name } = readClaims(token.idToken)
  const hasTexts = typeof subject === 'string' && typeof email === 'string' && email !== ''
  if (!hasTexts || issuer !== provider.direct.issuer)
    throw new CoordinatorError('oauth_exchange_failed', 'the ID token lacks a claim, or is of another issuer')
  const claims = { issuer, subject, email, name: typeof name === 'string' ? name : null }
  const { sid, ttlMs } = await openSession(deps, { token, claims, earlierSid: undefined, requestId })
  return { secret: sid, expiresAt: new Date(deps.clock.now() + ttlMs).toISOString() }
}

/** The claims of a token that nobody has verified yet. */
function readClaims(idToken: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString())
    if (isPlainObject(claims)) return claims
  } catch {
    // Not JSON.
  }
  throw new CoordinatorError('oauth_exchange_failed', 'the ID token is malformed')
}

type OpenSessionParameters = {
  token: OpenSessionRequest
  claims: { issuer: string; subject: string; email: string; name: string | null }
  earlierSid: string | undefined
  requestId: string
}

/** Has the enclave open a session, and stores it with the user and their wallet. */
async function openSession(
  deps: FinishLoginDeps,
  { token, claims, earlierSid, requestId }: OpenSessionParameters,
): Promise<{ sid: string; ttlMs: number }> {
  const { sid, grant, keyId, address, owner, expiresAt } = await deps.enclave.openSession(token)
  const { issuer, subject } = owner.identity
  if (issuer !== claims.issuer || subject !== claims.subject) throw invalidAnswer('openSession')
  const now = deps.clock.now()
  const user = await deps.store.upsertUser({ ...claims, kmsKeyId: keyId, now })
  // Without its grant, a session could not be used.
  const expiresAtMs = Math.min(now + deps.sessionTtlMs, Date.parse(expiresAt))
  const session = {
    sidHash: hashSid(sid),
    userId: user.id,
    grant,
    clientKey: token.clientKey,
    owner,
    keyId,
    address,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: expiresAtMs,
  }
  if (earlierSid !== undefined) await deps.store.deleteSession(hashSid(earlierSid))
  await deps.store.createSession(session)
  try {
    await provisionWallet(deps, { user, session })
  } catch (error) {
    // The sign-in succeeds anyway. The SDK creates the wallet when it finds none.
    deps.log.warn({ msg: 'Could not create a wallet at sign-in', requestId, code: toPublicCode(error) })
  }
  return { sid, ttlMs: expiresAtMs - now }
}

async function consumeLogin(deps: FinishLoginDeps, parameters: FinishLoginParameters): Promise<Login> {
  const { state, loginSecret, providerId } = parameters
  const stateHash = hashState(state)
  const now = deps.clock.now()
  const login = await deps.store.consumeLogin({ id: toLoginId(stateHash), stateHash, now })
  // The callback must come from the provider and the browser that started the sign-in.
  const isOurs = login?.provider === providerId && login.stateHash === stateHash
  if (!isOurs || login.nonce !== toLoginNonce(Buffer.from(loginSecret, 'hex'), login.clientKey)) throw stateInvalid()
  return login
}

/** Checks the page again: someone with write access to the database could have replaced it. */
function checkReturnTo(allowedOrigins: readonly string[], { returnTo }: Login): string {
  if (allowedOrigins.includes(returnTo)) return returnTo
  try {
    return toReturnTo(allowedOrigins, [returnTo])
  } catch {
    throw stateInvalid()
  }
}

export function stateInvalid() {
  return new CoordinatorError('oauth_state_invalid', 'the sign-in is unknown or has expired')
}

/** The query parameter that tells a page how its sign-in ended. */
const OUTCOME = 'sign_in'

/**
 * Returns the page to return to after sign-in: a page on an allowed origin, by default the first origin. The result is the parsed URL, so
 * that browsers see the same host that was compared.
 */
export function toReturnTo(allowedOrigins: readonly string[], values: readonly string[]): string {
  const [text] = values
  if (text === undefined) {
    const [first] = allowedOrigins
    if (first === undefined) throw invalid()
    return first
  }
  if (values.length > 1 || !URL.canParse(text)) throw invalid()
  const url = new URL(text)
  // A blob: URL has the origin of the URL inside it.
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  if (!isWeb || url.username !== '' || url.password !== '' || !allowedOrigins.includes(url.origin)) throw invalid()
  // Removes the outcome of an earlier sign-in on this page.
  if (url.searchParams.has(OUTCOME)) url.searchParams.delete(OUTCOME)
  // Limits the parsed URL, which may be longer than the text, because it is the one that is stored and parsed again.
  if (url.href.length > MAX_RETURN_TO_LENGTH) {
    throw invalid(`return_to is longer than ${MAX_RETURN_TO_LENGTH} characters`)
  }
  return url.href
}

/** Adds the outcome to a page's URL after a cancelled or failed sign-in. */
export function addOutcome(returnTo: string, outcome: 'cancelled' | 'failed'): string {
  const url = new URL(returnTo)
  url.searchParams.set(OUTCOME, outcome)
  return url.href
}

function invalid(details = 'invalid return_to: expected a page on an allowed origin') {
  return new CoordinatorError('invalid_request', 'invalid return_to', { details })
}
