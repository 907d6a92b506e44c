import { randomBytes } from 'node:crypto'
import { type Hex, hashLogin, type Problem } from '@countersign/protocol'
import { createTestBrowser, type TestBrowser } from '@countersign/testing'
import { APP_ORIGIN } from '@countersign/testing/launcher'
import type { Scope } from '@countersign/testing/stack'
import { startContract } from '../../../contracts/startContract.ts'
import { type Backend, startBackend } from '../../../services/coordinator/test/backend.ts'
import { createClient } from '../../../services/enclave/test/clientKey.ts'

/* Services that sign users in with and without a browser key, and the steps of a sign-in that an operator could interfere with. */

/** With cookies; with a browser key through the service; with a browser key and the page's own client at the provider. */
export const modes = ['cookie', 'bound', 'direct'] as const
export type Mode = (typeof modes)[number]

export type Service = { mode: Mode; backend: Backend }
export type Client = ReturnType<typeof createClient>

/** An open session, and the key that its holder stamps with. */
export type Session = {
  sid: string
  headers: Record<string, string>
  address: Hex
  client: Client
  /** What the page sent to open the session, if it signed in directly. */
  token?: Token
}
type Token = { idToken: string; loginSecret: string; clientKey: string }

/** One service of each mode, on one chain. */
export async function startServices({ add }: Pick<Scope, 'add'>): Promise<Service[]> {
  const { chain, env } = await startContract()
  add(chain, ({ stop }) => stop())
  const services: Service[] = []
  for (const mode of modes) {
    const backend = await startBackend({
      env: { ...env, RECEIPTS: '2' },
      enclaveEnv: { SESSIONS: mode === 'cookie' ? 'any' : 'bound' },
      isDirect: mode === 'direct',
    })
    services.push({ mode, backend: add(backend, ({ stop }) => stop()) })
  }
  return services
}

/** Follows redirects and picks the account `as`, until a redirect leads to this origin. Returns undefined if the provider refuses. */
export async function visit(browser: TestBrowser, start: URL, { as, until }: { as: string; until: string }) {
  let target = start
  for (let hop = 0; hop < 20; hop++) {
    const response = await browser.request(target)
    await response.body?.cancel()
    const location = response.headers.get('location')
    if (location === null && !response.ok) return undefined
    // A page without a redirect is the account chooser.
    const next = location === null ? new URL(`?as=${as}`, target) : new URL(location, target)
    if (next.origin === until) return next
    target = next
  }
  throw new Error('too many redirects')
}

/** The first step of a sign-in through the service: the URL at the provider. The browser gets the login cookie. */
export async function startSignIn({ mode, backend }: Service, browser: TestBrowser, clientKey: string | undefined) {
  const url = new URL(`/auth/${mode === 'direct' ? 'page' : 'google'}`, backend.url)
  if (clientKey !== undefined) url.searchParams.set('client_key', clientKey)
  const response = await browser.request(url)
  const location = response.headers.get('location')
  return location === null ? readCode(response) : new URL(location)
}

/** The last step: the callback. Returns the session in the browser's cookie, or the error code. */
export async function finishSignIn(service: Service, browser: TestBrowser, callback: URL, client: Client) {
  const response = await browser.request(callback)
  if (!response.ok && response.status !== 302) return readCode(response)
  const sid = browser.cookies('localhost').get('countersign-session') ?? ''
  return describe(service, { sid, headers: { cookie: `countersign-session=${sid}` }, client })
}

/** The nonce and other values that a page chooses for a direct sign-in. */
export function createLogin({ clientKey }: Pick<Client, 'clientKey'>) {
  const loginSecret = randomBytes(32)
  const nonce = Buffer.from(hashLogin({ loginSecret, clientKey })).toString('base64url')
  return { loginSecret: loginSecret.toString('hex'), nonce, state: randomBytes(32).toString('base64url') }
}

/** A request to the provider for an ID token in the fragment. */
export function toAuthorizationUrl(
  { backend: { oidc } }: Service,
  { nonce, state }: { nonce: string; state: string },
  changes: Readonly<Record<string, string>> = {},
): URL {
  const url = new URL('/auth', oidc.issuer)
  const parameters = {
    client_id: oidc.pageClientId,
    redirect_uri: `${APP_ORIGIN}/`,
    response_type: 'id_token',
    scope: 'openid email profile',
    state,
    nonce,
    ...changes,
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url
}

/** The parameters in the fragment of the page that a direct sign-in returns to. */
export const readFragment = (page: URL | undefined) => new URLSearchParams(page?.hash.slice(1))

/** Opens a session from an ID token. */
export async function openDirectly(service: Service, token: Token, client: Client): Promise<Session | string> {
  const response = await post(service, {}, '/auth/page/token', token)
  if (!response.ok) return readCode(response)
  const { secret } = (await response.json()) as { secret: string }
  return {
    ...(await describe(service, { sid: secret, headers: { authorization: `Session ${secret}` }, client })),
    token,
  }
}

/** Signs in as the user's own page does. */
export async function signIn(
  service: Service,
  {
    as,
    browser = createTestBrowser(),
    client = createClient(),
  }: { as: string; browser?: TestBrowser; client?: Client },
): Promise<Session> {
  let session: Session | string
  if (service.mode === 'direct') {
    const login = createLogin(client)
    const page = await visit(browser, toAuthorizationUrl(service, login), { as, until: APP_ORIGIN })
    const idToken = readFragment(page).get('id_token') ?? ''
    const token = { idToken, loginSecret: login.loginSecret, clientKey: client.clientKey }
    session = await openDirectly(service, token, client)
  } else {
    const url = await startSignIn(service, browser, service.mode === 'bound' ? client.clientKey : undefined)
    const callback = url instanceof URL && (await visit(browser, url, { as, until: service.backend.url }))
    session = callback ? await finishSignIn(service, browser, callback, client) : 'no callback'
  }
  if (typeof session === 'string') throw new Error(`sign-in as ${as} failed: ${session}`)
  return session
}

async function describe(service: Service, session: Omit<Session, 'address'>): Promise<Session> {
  const wallet = await get(service, session, '/wallet/me')
  if (!wallet.ok) throw new Error(`no wallet: ${await readCode(wallet)}`)
  return { ...session, address: ((await wallet.json()) as { address: Hex }).address }
}

const get = ({ backend }: Service, { headers }: Pick<Session, 'headers'>, path: string) =>
  fetch(new URL(path, backend.url), { headers: { ...headers, origin: APP_ORIGIN } })

export const post = ({ backend }: Service, headers: Record<string, string>, path: string, body: unknown) =>
  fetch(new URL(path, backend.url), {
    method: 'POST',
    headers: { ...headers, origin: APP_ORIGIN, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

export async function readCode(response: Response): Promise<string> {
  return ((await response.json()) as Problem).code
}

/** The claims of a token as the page reads them. */
export function readClaims({ idToken }: Pick<Token, 'idToken'>): { iss: string; sub: string; aud: string } {
  return JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString())
}
