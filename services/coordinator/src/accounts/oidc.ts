import { isSafeUrl, readBounded } from '@countersign/protocol'
import * as client from 'openid-client'
import { CoordinatorError } from '../errors.ts'

/** An identity provider, by its id. */
export type IdentityProvider = {
  /** For people. */
  readonly name: string
  /** A `data:` URL. */
  readonly icon: string
  /**
   * Where to send the browser. `mustChoose` has the provider ask who it is, though it may know somebody in this browser. Throws
   * `provider_unavailable`.
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

/** Who somebody is, in the words of their provider. */
type ProviderUser = {
  idToken: string
  issuer: string
  subject: string
  email: string
  name: string | null
}

/** What makes a provider ask who it is. */
export type Prompt = 'select_account' | 'login' | 'off'

export type OidcProviderParameters = Pick<IdentityProvider, 'name' | 'icon'> & {
  issuer: string
  clientId: string
  /** None for a public client: PKCE protects the exchange either way. A function where each exchange has its own. */
  clientSecret?: string | (() => string)
  /** Exactly as registered with the provider. */
  redirectUri: string
  /** Of those who do not list what they take, and do not take `select_account`. */
  prompt?: Prompt
  scope: string
  /** How the answer comes back: a redirect with a query, or a form that the browser posts. */
  responseMode: 'query' | 'form_post'
  fetch?: typeof globalThis.fetch
  /** Lets a local provider speak plain http. Loopback only: everyone on the way could sign in as anyone. */
  allowInsecure?: boolean
  /** Told why its metadata cannot be had, for operators: no caller and no log gets it. */
  onUnavailable?: (cause: unknown) => void
}

const TIMEOUT_SECONDS = 10
const MAX_ID_TOKEN_LENGTH = 16_384
/** For each answer, decompressed. Metadata of large providers has a few kilobytes. */
const MAX_ANSWER_BYTES = 262_144

type Profile = { email?: unknown; name?: unknown }

/**
 * An OpenID Connect provider: authorization code with PKCE, `state`, `nonce` and `iss`. Its metadata is fetched at the first
 * sign-in, so that the service and the other providers work without it, and again after a failure.
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
    // Who the user is rests on the enclave, which checks the ID token's signature itself before any session exists.
    const configuration = await client.discovery(issuer, clientId, undefined, toClientAuth(clientSecret), {
      timeout: TIMEOUT_SECONDS,
      [client.customFetch]: createBoundedFetch(fetch),
      ...(issuer.protocol === 'http:' ? { execute: [client.allowInsecureRequests] } : {}),
    })
    // For Microsoft the library lets a placeholder stand for the tenant: then anybody's tenant could name our users.
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
        // The registered address with what the provider added: the host of the request is the caller's word.
        const answered = new URL(redirectUri)
        answered.search = callbackUrl.search
        const tokens = await client.authorizationCodeGrant(configuration, answered, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        const idToken = tokens.id_token
        if (claims === undefined || idToken === undefined || idToken.length > MAX_ID_TOKEN_LENGTH) throw failed()
        // It is a key in the database, so nothing of it can be left out.
        if (UNWRITABLE.test(claims.sub)) throw failed('the provider gave a subject with control characters')
        const said: Profile = { email: claims.email, name: claims.name }
        const profile = hasEmail(said) ? said : await getUserInfo(configuration, tokens.access_token, claims.sub)
        if (!hasEmail(profile)) throw failed('the provider gave no e-mail address')
        const name = toName(claims.name) ?? toName(profile.name)
        return { idToken, issuer: claims.iss, subject: claims.sub, email: profile.email, name }
      })
    },
  }
}

/** In the body of the request, as all of them take it. */
function toClientAuth(clientSecret: OidcProviderParameters['clientSecret']): client.ClientAuth {
  if (clientSecret === undefined) return client.None()
  return (as, { client_id }, body, headers) => {
    const secret = typeof clientSecret === 'string' ? clientSecret : clientSecret()
    client.ClientSecretPost(secret)(as, { client_id }, body, headers)
  }
}

/** Has the provider ask who it is. Those that list what they take may know only the second, which asks for the password too. */
function findPrompt(configuration: client.Configuration): Prompt {
  const { prompt_values_supported: supported } = configuration.serverMetadata()
  const isTaken = (value: Prompt) => !Array.isArray(supported) || supported.includes(value)
  return (['select_account', 'login'] as const).find(isTaken) ?? 'off'
}

/** Providers may keep what the scopes ask for out of the ID token: OpenID Connect Core §5.4. */
async function getUserInfo(
  configuration: client.Configuration,
  accessToken: string,
  subject: string,
): Promise<Profile> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return {}
  return client.fetchUserInfo(configuration, accessToken, subject)
}

/** The library reads an answer whole, however long it is; so it gets only what fits. The time limit is in its signal. */
function createBoundedFetch(fetch: typeof globalThis.fetch): client.CustomFetch {
  return async (url, options) => {
    const { body, status, statusText, headers } = await fetch(url, options as RequestInit)
    const bytes = await readBounded(body, MAX_ANSWER_BYTES)
    return new Response(bytes.length === 0 ? null : bytes, { status, statusText, headers })
  }
}

/** Control characters and halves of characters: PostgreSQL takes no NUL, and none of them is part of a name or an address. */
const UNWRITABLE = /[\p{Cc}\p{Cs}]/u

/** E-mail addresses are shown, never used to identify users, so whether they are verified does not matter here. */
function hasEmail(profile: Profile): profile is Profile & { email: string } {
  const { email } = profile
  if (typeof email !== 'string' || email.length > 320 || UNWRITABLE.test(email)) return false
  return /^[^\s@]+@[^\s@]+$/.test(email)
}

/** Only shown, so it is cleaned rather than refused. */
function toName(value: unknown): string | null {
  if (typeof value !== 'string') return null
  const name = value.slice(0, 1000).replace(new RegExp(UNWRITABLE, 'gu'), '').trim().slice(0, 200)
  return name.replace(new RegExp(UNWRITABLE, 'gu'), '') || null
}

/** What went wrong may quote a token or a code, so nothing of it is passed on: not as a cause either. */
async function exchange(run: () => Promise<ProviderUser>): Promise<ProviderUser | 'cancelled'> {
  try {
    return await run()
  } catch (error) {
    // By now the library has compared `state` and `iss`: these are the words of the provider that was asked.
    if (error instanceof client.AuthorizationResponseError) return evaluateRefusal(error.error)
    if (isOutage(error)) throw unavailable()
    // The operator's to mend, and no word about this user: the secret has expired, or is another.
    if (error instanceof client.ResponseBodyError && CLIENT_REFUSALS.includes(error.error)) {
      throw unavailable(`the provider returned ${error.error}`)
    }
    throw error instanceof CoordinatorError ? error : failed()
  }
}

const CLIENT_REFUSALS = ['invalid_client', 'unauthorized_client']

/** Node says `fetch failed` whatever was wrong with the way to the provider. */
function isOutage(error: unknown): boolean {
  if (error instanceof TypeError) return error.message === 'fetch failed'
  if (error instanceof client.ResponseBodyError) return error.status >= 500
  if (!(error instanceof client.ClientError)) return false
  return error.code === 'OAUTH_TIMEOUT' || (error.cause instanceof Response && error.cause.status >= 500)
}

function unavailable(details?: string) {
  const options = details === undefined ? {} : { details }
  return new CoordinatorError('provider_unavailable', 'the provider cannot be reached', options)
}

function failed(details?: string) {
  const options = details === undefined ? {} : { details }
  return new CoordinatorError('oauth_exchange_failed', 'the provider did not sign the user in', options)
}

function parseIssuer(text: string, allowInsecure: boolean): URL {
  const url = new URL(text)
  if (url.protocol === 'https:' || (allowInsecure && isSafeUrl(url))) return url
  throw new Error('an issuer must be https; plain http is for loopback alone')
}

/** OAuth 2.0 (RFC 6749 §4.1.2.1) and OpenID Connect (§3.1.2.6): the only words of a provider that are passed on. */
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

/** The second is Apple's word. */
const CANCELLATIONS = ['access_denied', 'user_cancelled_authorize']

const OUTAGES = ['server_error', 'temporarily_unavailable']

/** What the `error` of a callback means. A user who changes their mind is no failure; the rest is thrown. */
export function evaluateRefusal(error: string): 'cancelled' {
  if (CANCELLATIONS.includes(error)) return 'cancelled'
  if (OUTAGES.includes(error)) {
    const details = `the provider returned ${error}`
    throw new CoordinatorError('provider_unavailable', 'the provider cannot serve', { details })
  }
  const details = REFUSALS.includes(error) ? `the provider returned ${error}` : undefined
  throw new CoordinatorError('oauth_refused', 'the provider refused', details === undefined ? {} : { details })
}
