import { createPrivateKey, sign } from 'node:crypto'
import type { Clock } from '../system.ts'
import { createOidcProvider, type IdentityProvider, type OidcProviderParameters, type Prompt } from './oidc.ts'

/** What is particular about a provider, by its issuer. Everybody else is plain OpenID Connect. */
export type Preset = Pick<OidcProviderParameters, 'scope' | 'responseMode'> & {
  /** For people. */
  name?: string
  hasKey?: boolean
}

const PLAIN: Preset = { scope: 'openid email profile', responseMode: 'query' }

/** Apple has no scope `profile`, and posts a form to whoever asks for an e-mail address. */
const APPLE: Preset = { name: 'Apple', scope: 'openid email name', responseMode: 'form_post', hasKey: true }

/** Where a provider with this id is, unless the settings say otherwise. */
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

/** The key that Apple gave the team, and its names. */
type AppleKey = { teamId: string; keyId: string /** PKCS #8, PEM. */; privateKey: string }

/** One exchange needs it for seconds; Apple accepts up to six months. */
const TTL_S = 300

/**
 * The client secret that Apple takes: a JWT, signed with the team's key (Apple, "Creating a client secret"). Each exchange
 * makes its own, so that none is kept and none expires.
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

/** Throws where it is not a private key on P-256, without quoting it. */
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
