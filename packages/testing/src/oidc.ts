import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { exportJWK, generateKeyPair } from 'jose'
import Provider, { type Configuration } from 'oidc-provider'
import { listen } from './listen.ts'

export type OidcAccount = { sub: string; email: string; name: string }

export type OidcProviderParameters = {
  /** 0 for any free one. */
  port?: number
  clientId?: string
  clientSecret?: string
  redirectUris: readonly string[]
  accounts?: readonly OidcAccount[]
}

export type RunningOidcProvider = {
  issuer: string
  clientId: string
  clientSecret: string
  accounts: readonly OidcAccount[]
  stop(): Promise<void>
}

export const developmentAccounts: readonly OidcAccount[] = [
  { sub: 'alice', email: 'alice@example.com', name: 'Alice' },
  { sub: 'bob', email: 'bob@example.com', name: 'Bob' },
]

/**
 * A real OpenID provider on loopback, with a page on which one click signs in as any user, without a password: for
 * development and tests only.
 */
export async function startOidcProvider(parameters: OidcProviderParameters): Promise<RunningOidcProvider> {
  const { port = 0, clientId = 'countersign', accounts = developmentAccounts } = parameters
  const clientSecret = parameters.clientSecret ?? randomBytes(16).toString('hex')
  // The issuer's URL has to be known before the provider is made, and the port only after listening.
  let handle: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.end()
  const server = createServer((request, response) => handle(request, response))
  const listening = await listen(server, port)
  const issuer = `http://localhost:${listening.port}`
  const provider = new Provider(issuer, await createConfiguration({ ...parameters, clientId, clientSecret, accounts }))
  const callback = provider.callback()
  handle = (request, response) => {
    if (request.url?.startsWith('/interaction/')) void interact(provider, accounts, request, response)
    else callback(request, response)
  }
  return {
    issuer,
    clientId,
    clientSecret,
    accounts,
    stop: listening.stop,
  }
}

async function createConfiguration(parameters: {
  clientId: string
  clientSecret: string
  redirectUris: readonly string[]
  accounts: readonly OidcAccount[]
}): Promise<Configuration> {
  const { clientId, clientSecret, redirectUris, accounts } = parameters
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
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'development', use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    // E-mail address and name go into the ID token itself, as Google has it.
    conformIdTokenClaims: false,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 3600, IdToken: 600, Interaction: 600, Session: 3600 },
    findAccount: (_, id) => {
      const account = accounts.find(({ sub }) => sub === id)
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

/** GET shows who there is; `?as=` signs in as one of them. */
async function interact(
  provider: Provider,
  accounts: readonly OidcAccount[],
  request: IncomingMessage,
  response: ServerResponse,
) {
  try {
    const url = new URL(request.url ?? '/', 'http://localhost')
    const account = accounts.find(({ sub }) => sub === url.searchParams.get('as'))
    if (account !== undefined) {
      return await provider.interactionFinished(request, response, { login: { accountId: account.sub } })
    }
    await provider.interactionDetails(request, response)
    response.setHeader('content-type', 'text/html; charset=utf-8')
    const links = accounts.map(
      ({ sub, name }) => `<p><a href="?as=${encodeURIComponent(sub)}">Sign in as ${escapeHtml(name)}</a></p>`,
    )
    response.end(`<!doctype html><title>Local sign-in</title><h1>Who are you?</h1>${links.join('')}`)
  } catch {
    response.statusCode = 400
    response.end('this sign-in is over; start again')
  }
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}
