import type { IdentityProvider } from '../ports.ts'
import { createOidcProvider } from './oidc.ts'

export type ProviderConfig = { id: string; issuer: string; clientId: string; clientSecret: string }

/** The identity providers by their id, which is in the path of their sign-in. */
export function createProviders(
  providers: readonly ProviderConfig[],
  { publicUrl }: { publicUrl: string },
): Map<string, IdentityProvider> {
  const entries = providers.map(({ id, issuer, clientId, clientSecret }) => {
    const redirectUri = `${publicUrl}/auth/${id}/callback`
    const allowInsecure = issuer.startsWith('http:')
    return [id, createOidcProvider({ issuer, clientId, clientSecret, redirectUri, allowInsecure })] as const
  })
  return new Map(entries)
}
