import type { EndpointResponse } from '@countersign/protocol'
import type { Store } from '../store/openStore.ts'
import type { SignedIn } from './session.ts'

/** `POST /auth/logout`: the session is gone for every copy of its cookie. */
export async function logout(
  deps: { store: Pick<Store, 'deleteSession'> },
  { session }: Pick<SignedIn, 'session'>,
): Promise<EndpointResponse<'POST /auth/logout'>> {
  await deps.store.deleteSession(session.sidHash)
  return { ok: true }
}
