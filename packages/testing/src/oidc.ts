import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair } from 'jose'
import Provider, { type Configuration, interactionPolicy } from 'oidc-provider'
import { listen } from './listen.ts'
import {
  createLocalAccounts,
  type LocalAccounts,
  type OidcAccount,
  readRemembered,
  writeRemembered,
} from './localAccounts.ts'
import { renderOverPage, renderSignInPage } from './localSignInPage.ts'
import { PAGE_CLIENT_ID } from './stack/environments.ts'

export type OidcProviderParameters = {
  /** 0 takes a free one. */
  port?: number
  clientId?: string
  clientSecret?: string
  redirectUris: readonly string[]
  /** Adds a client without a secret, of a page that signs in itself and gets the ID token in the fragment of one of these URLs. */
  pageUris?: readonly string[]
  /** Suggested on the sign-in page. Any other name works too. */
  accounts?: readonly OidcAccount[]
}

export type RunningOidcProvider = Awaited<ReturnType<typeof startOidcProvider>>

const developmentAccounts: readonly OidcAccount[] = [
  { sub: 'alice', email: 'alice@example.com', name: 'Alice' },
  { sub: 'bob', email: 'bob@example.com', name: 'Bob' },
  { sub: 'carol', email: 'carol@example.com', name: 'Carol' },
]

/**
 * Starts a real OpenID provider on loopback that accepts any name without a password, for development and tests only. Like real ones, it
 * remembers a browser for an hour and asks again for `prompt=select_account`.
 */
export async function startOidcProvider(parameters: OidcProviderParameters) {
  const { port = 0, clientId = 'countersign', accounts = developmentAccounts } = parameters
  const clientSecret = parameters.clientSecret ?? randomBytes(16).toString('hex')
  // The provider needs the issuer's URL, which includes the port, and the port is known only after listening.
  let handle: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end()
  const server = createServer((request, response) => handle(request, response))
  const listening = await listen(server, port)
  const issuer = `http://localhost:${listening.port}`
  const people = createLocalAccounts(accounts)
  const provider = new Provider(issuer, await createConfiguration({ ...parameters, clientId, clientSecret, people }))
  const callback = provider.callback()
  handle = (request, response) => {
    if (request.url?.startsWith('/interaction/')) void interact({ provider, people, accounts }, request, response)
    else callback(request, response)
  }
  return { issuer, clientId, clientSecret, pageClientId: PAGE_CLIENT_ID, accounts, stop: listening.stop }
}

async function createConfiguration(parameters: {
  clientId: string
  clientSecret: string
  redirectUris: readonly string[]
  pageUris?: readonly string[]
  people: LocalAccounts
}): Promise<Configuration> {
  const { clientId, clientSecret, redirectUris, pageUris, people } = parameters
  const policy = interactionPolicy.base()
  policy.add(new interactionPolicy.Prompt({ name: 'select_account', requestable: true }), 0)
  // Native clients would ask for consent every time. The page is one only to be allowed on http.
  policy.get('consent')?.checks.remove('native_client_prompt')
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [...redirectUris],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
      ...(pageUris === undefined
        ? []
        : [
            {
              client_id: PAGE_CLIENT_ID,
              redirect_uris: [...pageUris],
              // The library accepts http on loopback only from native clients.
              application_type: 'native' as const,
              grant_types: ['implicit'],
              response_types: ['id_token' as const],
              token_endpoint_auth_method: 'none' as const,
            },
          ]),
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'development', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    // Includes e-mail address and name in the ID token, as Google does.
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { policy, url: (_, interaction) => `/interaction/${interaction.uid}` },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 3600, IdToken: 600, Interaction: 600, Session: 3600 },
    findAccount: (_, id) => {
      const account = people.find(id)
      if (account === undefined) return undefined
      return { accountId: id, claims: () => ({ ...account, email_verified: true }) }
    },
    loadExistingGrant: async (context) => {
      const { client, session, provider } = context.oidc
      if (client === undefined || session?.accountId === undefined) return undefined
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  }
}

type InteractDeps = { provider: Provider; people: LocalAccounts; accounts: readonly OidcAccount[] }

/** GET shows the page; `?as=` signs in with a listed account, `?name=` with any name, and `?cancel=` cancels. */
async function interact(
  { provider, people, accounts }: InteractDeps,
  request: IncomingMessage,
  response: ServerResponse,
) {
  response.setHeader('content-type', 'text/html; charset=utf-8')
  response.setHeader('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
  response.setHeader('cache-control', 'no-store')
  try {
    const { searchParams } = new URL(request.url ?? '/', 'http://localhost')
    const { cookie } = request.headers
    const name = searchParams.get('name')
    if (searchParams.has('cancel')) {
      const error_description = 'the user cancelled'
      return await provider.interactionFinished(request, response, { error: 'access_denied', error_description })
    }
    const account = name === null ? people.find(searchParams.get('as') ?? '') : people.findByName(name)
    if (account !== undefined) {
      await endOtherSession(provider, account, request, response)
      response.setHeader('set-cookie', writeRemembered(cookie, account.name))
      const result = { login: { accountId: account.sub }, select_account: {} }
      return await provider.interactionFinished(request, response, result)
    }
    await provider.interactionDetails(request, response)
    response.statusCode = name === null ? 200 : 400
    response.end(
      renderSignInPage({ remembered: readRemembered(cookie), suggested: accounts, isRefused: name !== null }),
    )
  } catch {
    response.statusCode = 400
    response.end(renderOverPage())
  }
}

/** Otherwise the library would make the browser post a form by script to sign the previous user out. */
async function endOtherSession(
  provider: Provider,
  account: OidcAccount,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const interaction = await provider.interactionDetails(request, response)
  if (interaction.session === undefined || interaction.session.accountId === account.sub) return
  const session = await provider.Session.findByUid(interaction.session.uid)
  await session?.destroy()
  delete interaction.session
  await interaction.save(interaction.exp - Math.floor(Date.now() / 1000))
}
