import type { OwnerIdentity } from '@countersign/protocol'
import type { Session } from '../client/request.ts'
import type { ClientKey } from './keyStore.ts'

export type { Session }

export type BoundSessionOptions = {
  /** A key that the app stores, for Node and React Native. By default, the browser creates a key for each sign-in and stores it. */
  key?: ClientKey | undefined
}

/** The page's own client at the identity provider, which the service accepts with `OIDC_<ID>_DIRECT=true`. */
export type DirectSessionOptions = {
  /** The provider's id at the service, as in `POST /auth/<id>/token`. */
  provider: string
  issuer: string
  clientId: string
  authorizationUrl: string
  /** For providers that allow public clients the code flow with PKCE. Without it, the provider returns the ID token to the page. */
  tokenUrl?: string | undefined
  /** A page of this origin, registered with the provider. Defaults to the origin's first page. */
  redirectUri?: string | undefined
}

export type DirectSession = Session & {
  /** The user whom the page's own ID token names, or null if no one is signed in. The service has no part in it. */
  readIdentity(service: { apiBaseUrl: string }): Promise<OwnerIdentity | null>
}
