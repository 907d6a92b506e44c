import type { Store } from '../store/openStore.ts'
import type { Clock, Random } from '../system.ts'
import { hashState, LOGIN_TTL_MS, toLoginId, toLoginNonce } from './loginNonce.ts'
import type { IdentityProvider } from './oidc.ts'

export type StartLoginDeps = { store: Pick<Store, 'createLogin'>; clock: Clock; random: Random }
export type StartLoginParameters = {
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
