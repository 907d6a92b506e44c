import { ServiceError } from '@countersign/protocol'
import type { Session } from '../client/request.ts'
import { type KeyStore, openKeyStore } from './keyStore.ts'
import type { BoundSessionOptions } from './session.ts'
import { type Parameters, readSession, type StampContext, stampRequest } from './stampRequest.ts'

export function createBoundSession({ key }: BoundSessionOptions): Session {
  return {
    async prepare({ apiBaseUrl }, parameters) {
      const keys = openKeyStore(apiBaseUrl)
      const findKey: StampContext['findKey'] =
        key === undefined ? keys.find : async ({ clientKey }) => (key.publicKey === clientKey ? key : undefined)
      if (isSignOut(parameters) && key === undefined) await deleteKeys(keys)
      return prepareRequest({ apiBaseUrl, shared: {}, findKey }, parameters)
    },

    async startLogin({ apiBaseUrl }, url) {
      const { publicKey } = key ?? (await openKeyStore(apiBaseUrl).create())
      return `${url}${url.includes('?') ? '&' : '?'}client_key=${publicKey}`
    },
  }
}

/** Without IndexedDB, there is no key to delete, and the session must still end at the service. */
export async function deleteKeys(keys: KeyStore): Promise<void> {
  await keys.clear().catch(() => {})
}

/** Whether the request ends this browser's session. */
export function isSignOut({ path, body }: Parameters): boolean {
  return path === '/auth/logout' && !(body as { session?: string } | undefined)?.session
}

/** Stamps the request. The request for the user fails with `session_not_bound` if the session has no key of this browser. */
export async function prepareRequest(context: StampContext, parameters: Parameters): Promise<Partial<Parameters>> {
  if (parameters.path === '/auth/me') {
    await readSession(context).catch((error: unknown) => {
      // Signed out: the request itself fails with 401.
      if (!(error instanceof ServiceError && error.status === 401)) throw error
    })
  }
  const body = await stampRequest(context, parameters)
  return { ...context.shared, ...(body && { body }) }
}
