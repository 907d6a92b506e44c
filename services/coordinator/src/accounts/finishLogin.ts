import type { Log } from '@countersign/service'
import { CoordinatorError, toPublicCode } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { Login } from '../store/logins.ts'
import type { Store } from '../store/openStore.ts'
import type { Clock } from '../system.ts'
import { hashState, toLoginId, toLoginNonce } from './loginNonce.ts'
import type { IdentityProvider } from './oidc.ts'
import { toReturnTo, toUnfinished } from './returnTo.ts'
import { hashSid } from './session.ts'
import { type ProvisionWalletDeps, provisionWallet } from './wallet.ts'

export type FinishLoginDeps = ProvisionWalletDeps & {
  store: Pick<Store, 'takeLogin' | 'upsertUser' | 'createSession' | 'deleteSession'>
  enclave: Pick<KeyEnclave, 'openSession'>
  clock: Clock
  log: Log
  sessionTtlMs: number
  allowedOrigins: readonly string[]
}

export type FinishLoginParameters = {
  providerId: string
  provider: IdentityProvider
  callbackUrl: URL
  state: string
  /** From the cookie named after this state. */
  loginSecret: string
  /** The session that the browser still had. */
  earlierSid: string | undefined
  /** Called with the page that the sign-in came from, once that is known: a failure leads back to it too. */
  onReturnTo(returnTo: string): void
  requestId: string
}

export type FinishLoginReturnType = {
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
