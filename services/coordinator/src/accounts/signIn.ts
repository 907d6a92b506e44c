import { hash } from 'node:crypto'
import { MAX_RETURN_TO_LENGTH, preimages, toPreimage } from '@countersign/protocol'
import type { Log } from '@countersign/service'
import { CoordinatorError, toPublicCode } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { Login } from '../store/logins.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock, Random } from '../system.ts'
import type { IdentityProvider } from './oidc.ts'
import { hashSid } from './session.ts'
import { type ProvisionWalletDeps, provisionWallet } from './wallet.ts'

/** A sign-in must be over within this time. */
export const LOGIN_TTL_MS = 600_000

/** The OpenID Connect nonce that binds an ID token to the browser that has the login secret. The enclave computes it too. */
function toLoginNonce(loginSecret: Uint8Array): string {
  return hash('sha256', toPreimage(preimages.login, { loginSecret }), 'base64url')
}

/** How the database knows a state. */
function hashState(state: string): string {
  return hash('sha256', state, 'hex')
}

/** Names the cookie, so that two tabs do not collide. */
function toLoginId(stateHash: string): string {
  return stateHash.slice(0, 16)
}

type StartLoginDeps = { store: Pick<Store, 'createLogin'>; clock: Clock; random: Random }
type StartLoginParameters = {
  providerId: string
  provider: IdentityProvider
  returnTo: string
  /** Whether the provider is to ask who it is. */
  mustChoose: boolean
}

/**
 * `GET /auth/:provider`. The login secret stays in the browser's cookie; the provider signs its hash, so that an ID token is
 * worth something only together with that browser.
 */
export async function startLogin(
  deps: StartLoginDeps,
  { providerId, provider, returnTo, mustChoose }: StartLoginParameters,
): Promise<{ id: string; loginSecret: string; location: URL }> {
  const loginSecret = deps.random(32)
  const state = Buffer.from(deps.random(32)).toString('base64url')
  const codeVerifier = Buffer.from(deps.random(32)).toString('base64url')
  const nonce = toLoginNonce(loginSecret)
  const stateHash = hashState(state)
  const id = toLoginId(stateHash)
  // Before the row: a provider that cannot be reached leaves none behind.
  const location = await provider.start({ state, nonce, codeVerifier, mustChoose })
  const expiresAt = deps.clock.now() + LOGIN_TTL_MS
  await deps.store.createLogin({ id, provider: providerId, stateHash, codeVerifier, nonce, returnTo, expiresAt })
  return { id, loginSecret: Buffer.from(loginSecret).toString('hex'), location }
}

export type FinishLoginDeps = ProvisionWalletDeps & {
  store: Pick<Store, 'takeLogin' | 'upsertUser' | 'createSession' | 'deleteSession'>
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
  /** Called with the page that the sign-in came from, once that is known: a failure leads back to it too. */
  onReturnTo(returnTo: string): void
  requestId: string
}

type FinishLoginReturnType = {
  /** Undefined where the user gave up. */
  cookie: { sid: string; ttlMs: number } | undefined
  returnTo: string
}

/** The id in the name of the cookie of a state; undefined for what cannot be a state of ours. */
export function toStateId(state: string | undefined): string | undefined {
  return state !== undefined && /^[A-Za-z0-9_-]{43}$/.test(state) ? toLoginId(hashState(state)) : undefined
}

/**
 * `GET /auth/:provider/callback`: consumes the login, exchanges the code, and has the enclave open a session from the ID token
 * and the login secret. The session secret is new, so whatever was planted before sign-in is worth nothing after it.
 */
export async function finishLogin(
  deps: FinishLoginDeps,
  parameters: FinishLoginParameters,
): Promise<FinishLoginReturnType> {
  const { provider, callbackUrl, state, loginSecret, earlierSid } = parameters
  const login = await takeLogin(deps, parameters)
  const { codeVerifier, nonce } = login
  const returnTo = toAllowedPage(deps.allowedOrigins, login)
  parameters.onReturnTo(returnTo)
  const answer = await provider.finish({ callbackUrl, state, nonce, codeVerifier })
  if (answer === 'cancelled') return { cookie: undefined, returnTo: toUnfinished(returnTo, 'cancelled') }
  const { idToken, issuer, subject, email, name } = answer
  if (email === '') throw new CoordinatorError('oauth_exchange_failed', 'the provider gave no e-mail address')
  const { sid, grant, keyId, address, expiresAt } = await deps.enclave.openSession({ idToken, loginSecret })

  const now = deps.clock.now()
  const user = await deps.store.upsertUser({ issuer, subject, email, name, kmsKeyId: keyId, now })
  // A session that outlived its grant could do nothing but be refused.
  const ends = Math.min(now + deps.sessionTtlMs, Date.parse(expiresAt))
  const session = {
    sidHash: hashSid(sid),
    userId: user.id,
    grant,
    keyId,
    address,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: ends,
  }
  if (earlierSid !== undefined) await deps.store.deleteSession(hashSid(earlierSid))
  await deps.store.createSession(session)
  try {
    await provisionWallet(deps, { user, session })
  } catch (error) {
    // The user is signed in all the same; the SDK provisions when it finds no wallet.
    deps.log.warn({
      msg: 'Did not provision at sign-in',
      requestId: parameters.requestId,
      code: toPublicCode(error),
    })
  }
  return { cookie: { sid, ttlMs: ends - now }, returnTo }
}

async function takeLogin(deps: FinishLoginDeps, parameters: FinishLoginParameters): Promise<Login> {
  const { state, loginSecret, providerId } = parameters
  const stateHash = hashState(state)
  const now = deps.clock.now()
  const login = await deps.store.takeLogin({ id: toLoginId(stateHash), stateHash, now })
  // A callback of one provider must not finish what was started with another; nor one browser what another started.
  const isOurs = login?.provider === providerId && login.stateHash === stateHash
  if (!isOurs || login.nonce !== toLoginNonce(Buffer.from(loginSecret, 'hex'))) throw stateInvalid()
  return login
}

/** Asked once more: whoever writes to the database could send people on to a page of theirs. */
function toAllowedPage(allowedOrigins: readonly string[], { returnTo }: Login): string {
  if (allowedOrigins.includes(returnTo)) return returnTo
  try {
    return toReturnTo(allowedOrigins, [returnTo])
  } catch {
    throw stateInvalid()
  }
}

export function stateInvalid() {
  return new CoordinatorError('oauth_state_invalid', 'the sign-in is unknown or over')
}

/** What pages are told in their query. */
const OUTCOME = 'sign_in'

/**
 * Where the browser goes after sign-in: a page on an allowed origin, or the first of these. The address is answered as the
 * parser read it, so that no browser can read another host into it than the one that was compared.
 */
export function toReturnTo(allowedOrigins: readonly string[], asked: readonly string[]): string {
  const [text] = asked
  if (text === undefined) {
    const [first] = allowedOrigins
    if (first === undefined) throw invalid()
    return first
  }
  if (asked.length > 1 || !URL.canParse(text)) throw invalid()
  const url = new URL(text)
  // The origin of a blob: URL is that of the page inside it.
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  if (!isWeb || url.username !== '' || url.password !== '' || !allowedOrigins.includes(url.origin)) throw invalid()
  // From a sign-in on the same page that came to nothing: the next one may not.
  if (url.searchParams.has(OUTCOME)) url.searchParams.delete(OUTCOME)
  // As the parser wrote it, which may be longer: that is what is kept, and read again at the callback.
  if (url.href.length > MAX_RETURN_TO_LENGTH) {
    throw invalid(`return_to is longer than ${MAX_RETURN_TO_LENGTH} characters`)
  }
  return url.href
}

/** The same page, told that nobody is signed in: the user gave up, or was shown why it failed. */
export function toUnfinished(returnTo: string, outcome: 'cancelled' | 'failed'): string {
  const url = new URL(returnTo)
  url.searchParams.set(OUTCOME, outcome)
  return url.href
}

function invalid(details = 'invalid return_to: expected a page on an allowed origin') {
  return new CoordinatorError('invalid_request', 'invalid return_to', { details })
}
