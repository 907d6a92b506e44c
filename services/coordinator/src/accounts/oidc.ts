import { isSafeUrl, readBounded } from '@countersign/protocol'
import * as client from 'openid-client'
import { CoordinatorError } from '../errors.ts'

/** An identity provider, by its id. */
export type IdentityProvider = {
  /** Shown to users. */
  readonly name: string
  /** A `data:` URL. */
  readonly icon: string
  /**
   * Returns the URL to send the browser to. With `mustChoose`, the provider asks for the account even if the browser is signed in there.
   * Throws `provider_unavailable`.
   */
  start(parameters: { state: string; nonce: string; codeVerifier: string; mustChoose: boolean }): Promise<URL>
  /**
   * Exchanges the code of a callback for the raw ID token and its claims. Throws `oauth_exchange_failed`, `oauth_refused` or
   * `provider_unavailable`.
   */
  finish(parameters: {
    callbackUrl: URL
    state: string
    nonce: string
    codeVerifier: string
  }): Promise<ProviderUser | 'cancelled'>
}

/** A provider at which pages sign in themselves: the service has no client there, and opens sessions from ID tokens only. */
export type DirectProvider = Pick<IdentityProvider, 'name' | 'icon'> & {
  readonly direct: { readonly issuer: string; readonly clientId: string }
}

/** The user's claims from the provider. */
type ProviderUser = {
  idToken: string
  issuer: string
  subject: string
  email: string
  name: string | null
}

/** The `prompt` parameter. */
export type Prompt = 'select_account' | 'login' | 'off'

export type OidcProviderParameters = Pick<IdentityProvider, 'name' | 'icon'> & {
  issuer: string
  clientId: string
  /** Undefined for a public client: PKCE protects the exchange in both cases. A function if each exchange needs a new secret. */
  clientSecret?: string | (() => string)
  /** Exactly as registered with the provider. */
  redirectUri: string
  /** For providers that don't list the values they support and don't support `select_account`. */
  prompt?: Prompt
  scope: string
  /** How the provider responds: a redirect with a query, or a form that the browser posts. */
  responseMode: 'query' | 'form_post'
  fetch?: typeof globalThis.fetch
  /** Allows http for a provider on loopback. Elsewhere, anyone on the network path could sign in as any user. */
  allowInsecure?: boolean
  /** Called with the reason why the provider's metadata is unavailable. Callers and logs don't get it. */
  onUnavailable?: (cause: unknown) => void
}

const TIMEOUT_SECONDS = 10
const MAX_ID_TOKEN_LENGTH = 16_384
/** Per response, decompressed. Metadata of large providers takes a few kilobytes. */
const MAX_ANSWER_BYTES = 262_144

type Profile = { email?: unknown; name?: unknown }

/**
 * An OpenID Connect provider: authorization code with PKCE, `state`, `nonce` and `iss`. Fetches the metadata at the first sign-in, so that
 * the service and other providers work without it. Fetches it again after a failure.
 */
export function createOidcProvider(parameters: OidcProviderParameters): IdentityProvider {
  const { name, icon, clientId, clientSecret, redirectUri, scope, responseMode } = parameters
  const { allowInsecure = false, fetch = globalThis.fetch } = parameters
  const issuer = parseIssuer(parameters.issuer, allowInsecure)
  let discovered: Promise<client.Configuration> | undefined

  function getConfiguration(): Promise<client.Configuration> {
    discovered ??= discover().catch((cause: unknown) => {
      discovered = undefined
      parameters.onUnavailable?.(cause)
      throw unavailable()
    })
    return discovered
  }

  async function discover() {
    // This client doesn't check the ID token's signature. The enclave does, before it opens a session.
    const configuration = await client.discovery(issuer, clientId, undefined, toClientAuth(clientSecret), {
      timeout: TIMEOUT_SECONDS,
      [client.customFetch]: createBoundedFetch(fetch),
      ...(issuer.protocol === 'http:' ? { execute: [client.allowInsecureRequests] } : {}),
    })
    // For Microsoft, the library accepts a placeholder for the tenant. Then any tenant could impersonate our users.
    if (new URL(configuration.serverMetadata().issuer).href !== issuer.href) throw unavailable()
    return configuration
  }

  return {
    name,
    icon,

    async start({ state, nonce, codeVerifier, mustChoose }) {
      const configuration = await getConfiguration()
      const prompt = mustChoose ? (parameters.prompt ?? findPrompt(configuration)) : 'off'
      try {
        return client.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope,
          state,
          nonce,
          code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
          code_challenge_method: 'S256',
          ...(responseMode === 'query' ? {} : { response_mode: responseMode }),
          ...(prompt === 'off' ? {} : { prompt }),
        })
      } catch {
        throw unavailable()
      }
    },

    async finish({ callbackUrl, state, nonce, codeVerifier }) {
      const configuration = await getConfiguration()
      return exchange(async () => {
        // Builds the callback URL from the registered address, because the caller controls the request's `Host`.
        const registeredCallback = new URL(redirectUri)
        registeredCallback.search = callbackUrl.search
        const tokens = await client.authorizationCodeGrant(configuration, registeredCallback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        const idToken = tokens.id_token
        if (claims === undefined || idToken === undefined || idToken.length > MAX_ID_TOKEN_LENGTH) throw failed()
        // The subject is a database key, so no character can be removed.
        if (INVALID_CHARACTERS.test(claims.sub)) throw failed('the provider gave a subject with control characters')
        const idTokenClaims: Profile = { email: claims.email, name: claims.name }
        const profile = hasEmail(idTokenClaims)
          ? idTokenClaims
          : await getUserInfo(configuration, tokens.access_token, claims.sub)
        if (!hasEmail(profile)) throw failed('the provider gave no e-mail address')
        const name = toName(claims.name) ?? toName(profile.name)
        return { idToken, issuer: claims.iss, subject: claims.sub, email: profile.email, name }
      })
    },
  }
}

/** Sends the secret in the request body, which all these providers accept. */
function toClientAuth(clientSecret: OidcProviderParameters['clientSecret']): client.ClientAuth {
  if (clientSecret === undefined) return client.None()
  return (as, { client_id }, body, headers) => {
    const secret = typeof clientSecret === 'string' ? clientSecret : clientSecret()
    client.ClientSecretPost(secret)(as, { client_id }, body, headers)
  }
}

/** Chooses the prompt that makes the provider ask for the account. Some providers support only `login`, which asks for the password, too. */
function findPrompt(configuration: client.Configuration): Prompt {
  const { prompt_values_supported: supported } = configuration.serverMetadata()
  const isSupported = (value: Prompt) => !Array.isArray(supported) || supported.includes(value)
  return (['select_account', 'login'] as const).find(isSupported) ?? 'off'
}

/** Providers may omit requested claims from the ID token (OpenID Connect Core §5.4). */
async function getUserInfo(
  configuration: client.Configuration,
  accessToken: string,
  subject: string,
): Promise<Profile> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return {}
  return client.fetchUserInfo(configuration, accessToken, subject)
}

/** The library reads a response of any length, so this limits it. The time limit is in the library's signal. */
function createBoundedFetch(fetch: typeof globalThis.fetch): client.CustomFetch {
  return async (url, options) => {
    const { body, status, statusText, headers } = await fetch(url, options as RequestInit)
    const bytes = await readBounded(body, MAX_ANSWER_BYTES)
    return new Response(bytes.length === 0 ? null : bytes, { status, statusText, headers })
  }
}

/** Control characters and lone surrogates. PostgreSQL stores no NUL, and names and addresses contain none of them. */
const INVALID_CHARACTERS = /[\p{Cc}\p{Cs}]/u

/** E-mail addresses are only displayed, so unverified ones are accepted. */
function hasEmail(profile: Profile): profile is Profile & { email: string } {
  const { email } = profile
  if (typeof email !== 'string' || email.length > 320 || INVALID_CHARACTERS.test(email)) return false
  return /^[^\s@]+@[^\s@]+$/.test(email)
}

/** The name is only displayed, so it is cleaned instead of rejected. */
function toName(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const name = value.slice(0, 1000).replace(new RegExp(INVALID_CHARACTERS, 'gu'), '').trim().slice(0, 200)
  return name.replace(new RegExp(INVALID_CHARACTERS, 'gu'), '') || null
}

/** Runs the exchange. Drops the original error, even as a cause, because it may contain a token or a code. */
async function exchange(run: () => Promise<ProviderUser>): Promise<ProviderUser | 'cancelled'> {
  try {
    return await run()
  } catch (error) {
    // The library has already checked `state` and `iss`, so this error is from the right provider.
    if (error instanceof client.AuthorizationResponseError) return evaluateRefusal(error.error)
    if (isOutage(error)) throw unavailable()
    // The client secret is wrong or has expired. The operator must fix it.
    if (error instanceof client.ResponseBodyError && CLIENT_REFUSALS.includes(error.error)) {
      throw unavailable(`the provider returned ${error.error}`)
    }
    throw error instanceof CoordinatorError ? error : failed()
  }
}

const CLIENT_REFUSALS = ['invalid_client', 'unauthorized_client']

/** Node throws a `TypeError` with `fetch failed` for every connection failure. */
function isOutage(error: unknown): boolean {
  if (error instanceof TypeError) return error.message === 'fetch failed'
  if (error instanceof client.ResponseBodyError) return error.status >= 500
  if (!(error instanceof client.ClientError)) return false
  return error.code === 'OAUTH_TIMEOUT' || (error.cause instanceof Response && error.cause.status >= 500)
}

function unavailable(details?: string) {
  const options = details === undefined ? {} : { details }
  return new CoordinatorError('provider_unavailable', 'the provider is unreachable', options)
}

function failed(details?: string) {
  const options = details === undefined ? {} : { details }
  return new CoordinatorError('oauth_exchange_failed', 'the provider did not sign the user in', options)
}

function parseIssuer(text: string, allowInsecure: boolean): URL {
  const url = new URL(text)
  if (url.protocol === 'https:' || (allowInsecure && isSafeUrl(url))) return url
  throw new Error('invalid issuer: expected https, or http on loopback')
}

/** The provider's error codes that are passed on (RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6). */
const REFUSALS = [
  'invalid_request',
  'unauthorized_client',
  'unsupported_response_type',
  'invalid_scope',
  'interaction_required',
  'login_required',
  'consent_required',
  'account_selection_required',
]

/** Apple returns the second one. */
const CANCELLATIONS = ['access_denied', 'user_cancelled_authorize']

const OUTAGES = ['server_error', 'temporarily_unavailable']

/** Returns `cancelled` if the user cancelled, and throws for all other errors. */
export function evaluateRefusal(error: string): 'cancelled' {
  if (CANCELLATIONS.includes(error)) return 'cancelled'
  if (OUTAGES.includes(error)) {
    const details = `the provider returned ${error}`
    throw new CoordinatorError('provider_unavailable', 'the provider is temporarily unavailable', { details })
  }
  const details = REFUSALS.includes(error) ? `the provider returned ${error}` : undefined
  throw new CoordinatorError(
    'oauth_refused',
    'the provider returned an error',
    details === undefined ? {} : { details },
  )
}
