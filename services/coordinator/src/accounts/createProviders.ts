import type { Clock } from '../system.ts'
import { type AppleKey, createAppleSecret } from './createAppleSecret.ts'
import { createOidcProvider, type IdentityProvider, type OidcProviderParameters, type Prompt } from './oidc.ts'
import { getPreset } from './presets.ts'

export type ProviderConfig = {
  id: string
  issuer: string
  clientId: string
  clientSecret: string | AppleKey
  /** How it is made to ask who it is after a sign-out; undefined: as its metadata says. */
  prompt?: Prompt
  /** For people. */
  name: string
  /** A `data:` URL. */
  icon: string
}

/** The identity providers by their id, which is in the path of their sign-in. */
export function createProviders(
  providers: readonly ProviderConfig[],
  {
    publicUrl,
    clock,
    ...outside
  }: { publicUrl: string; clock: Clock } & Pick<OidcProviderParameters, 'fetch' | 'onUnavailable'>,
): Map<string, IdentityProvider> {
  const entries = providers.map(({ id, clientSecret, ...rest }) => {
    const { scope, responseMode } = getPreset(rest.issuer)
    const provider = createOidcProvider({
      ...rest,
      ...outside,
      scope,
      responseMode,
      clientSecret:
        typeof clientSecret === 'string' ? clientSecret : createAppleSecret(clientSecret, rest.clientId, clock),
      redirectUri: `${publicUrl}/auth/${id}/${responseMode === 'form_post' ? 'form' : 'callback'}`,
      allowInsecure: rest.issuer.startsWith('http:'),
    })
    return [id, provider] as const
  })
  return new Map(entries)
}
