import { createPrivateKey, sign } from 'node:crypto'
import type { Clock } from '../system.ts'
import {
  createOidcProvider,
  type DirectProvider,
  type IdentityProvider,
  type OidcProviderParameters,
  type Prompt,
} from './oidc.ts'

/** The settings that differ for known issuers. All other providers use plain OpenID Connect. */
export type Preset = Pick<OidcProviderParameters, 'scope' | 'responseMode'> & {
  /** Shown to users. */
  name?: string
  hasKey?: boolean
}

const PLAIN: Preset = { scope: 'openid email profile', responseMode: 'query' }

/** Apple has no `profile` scope. It answers with a form post if the scopes include the e-mail address. */
const APPLE: Preset = { name: 'Apple', scope: 'openid email name', responseMode: 'form_post', hasKey: true }

/** Default issuers by provider id. The settings can override them. */
export const defaultIssuers: Readonly<Record<string, string>> = {
  google: 'https://accounts.google.com',
  apple: 'https://appleid.apple.com',
}

export function getPreset(issuer: string): Preset {
  if (issuer === defaultIssuers.google) return { ...PLAIN, name: 'Google' }
  if (issuer === defaultIssuers.apple) return APPLE
  if (issuer.startsWith('https://login.microsoftonline.com/')) return { ...PLAIN, name: 'Microsoft' }
  return PLAIN
}

/** The key that Apple issued to the team, and its ids. */
type AppleKey = { teamId: string; keyId: string /** PKCS #8, PEM. */; privateKey: string }

/** One exchange needs it for seconds; Apple accepts up to six months. */
const TTL_S = 300

/**
 * Creates the client secret for Apple: a JWT, signed with the team's key (Apple, "Creating a client secret"). Each exchange
 * creates a new one, so none is stored and none can expire.
 */
export function createAppleSecret(
  { teamId, keyId, privateKey }: AppleKey,
  clientId: string,
  clock: Clock,
): () => string {
  const key = parseAppleKey(privateKey)
  return () => {
    const iat = Math.floor(clock.now() / 1000)
    const header = { alg: 'ES256', kid: keyId }
    const claims = { iss: teamId, iat, exp: iat + TTL_S, aud: 'https://appleid.apple.com', sub: clientId }
    const text = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    const signature = sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
    return `${text}.${signature.toString('base64url')}`
  }
}

/** Throws if this is not a private key on P-256. The error never quotes the key. */
export function parseAppleKey(pem: string) {
  try {
    const key = createPrivateKey(pem)
    if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key
  } catch {
    // The reason could quote the key.
  }
  throw new Error('not a private key on P-256')
}

export type ProviderConfig = {
  id: string
  issuer: string
  clientId: string
  /** Undefined if pages sign in at the provider themselves. */
  clientSecret: string | AppleKey | undefined
  /** The `prompt` to send after a sign-out, so that the provider asks who signs in. Undefined: taken from its metadata. */
  prompt?: Prompt
  /** Shown to users. */
  name: string
  /** A `data:` URL. */
  icon: string
}

/** The identity providers by id. The id is part of the sign-in path. */
export function createProviders(
  providers: readonly ProviderConfig[],
  {
    publicUrl,
    clock,
    ...outside
  }: { publicUrl: string; clock: Clock } & Pick<OidcProviderParameters, 'fetch' | 'onUnavailable'>,
): Map<string, IdentityProvider | DirectProvider> {
  const entries = providers.map(({ id, clientSecret, ...rest }): [string, IdentityProvider | DirectProvider] => {
    const { name, icon, issuer, clientId } = rest
    if (clientSecret === undefined) return [id, { name, icon, direct: { issuer, clientId } }]
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
    return [id, provider]
  })
  return new Map(entries)
}
