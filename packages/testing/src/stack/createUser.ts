import type { Hex, TxMetadata } from '@countersign/protocol'
import { createTestBrowser } from '../browser.ts'
import { APP_ORIGIN } from './environments.ts'
import { toDigest } from './transactions.ts'

/** Throws if an answer of the coordinator is invalid. */
export type CheckAnswer = (target: URL, method: string, response: Response) => Promise<void>

type CreateUserParameters = {
  /** URL of the coordinator. */
  url: string
  /** Called with every answer of the coordinator. */
  checkAnswer?: CheckAnswer
}

const MAX_REDIRECTS = 20
/** With the prefix that cookies have over https. */
const OURS = /^(?:__Host-)?countersign-/

export type TestUser = ReturnType<typeof createUser>

/** A user of the app with a separate browser. */
export function createUser({ url, checkAnswer = async () => {} }: CreateUserParameters) {
  const browser = createTestBrowser()
  const secrets = new Set<string>()
  const setCookies: string[] = []
  const getCookies = () => [...browser.cookies('localhost')].filter(([name]) => OURS.test(name))

  async function request(target: URL, init: Parameters<typeof browser.request>[1] = {}): Promise<Response> {
    const response = await browser.request(target, init)
    await checkAnswer(target, init.method ?? 'GET', response)
    setCookies.push(...response.headers.getSetCookie().filter((line) => OURS.test(line)))
    for (const [, value] of getCookies()) secrets.add(value)
    return response
  }

  /** Returns the next page of a sign-in; undefined if there is no redirect. */
  async function getRedirect(target: URL): Promise<URL | undefined> {
    const response = await request(target)
    const location = response.headers.get('location')
    if (location === null && target.origin === url) throw new Error(`sign-in failed: ${await response.text()}`)
    await response.body?.cancel()
    return location === null ? undefined : new URL(location, target)
  }

  /** Signs in at the provider. Returns the callback URL, without requesting it. */
  async function beginSignIn(as: string, query = ''): Promise<URL> {
    let target = new URL(`/auth/google${query}`, url)
    for (let hop = 0; hop < MAX_REDIRECTS; hop++) {
      const next = await getRedirect(target)
      if (next?.origin === url) {
        secrets.add(next.searchParams.get('code') ?? '')
        return next
      }
      // A page without a redirect is the provider's account chooser.
      target = next ?? new URL(`?as=${as}`, target)
    }
    throw new Error('too many redirects')
  }

  /** Returns the page of the app on which the user lands. */
  async function finishSignIn(callback: URL): Promise<URL> {
    const page = await getRedirect(callback)
    if (page?.origin !== APP_ORIGIN) throw new Error(`expected the sign-in to return to ${APP_ORIGIN}, got ${page}`)
    return page
  }

  const get = (path: string) => request(new URL(path, url))
  const post = (path: string, body?: unknown) =>
    request(new URL(path, url), {
      method: 'POST',
      headers: { origin: APP_ORIGIN, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  return {
    /** Values of all service cookies that this browser ever had, and the codes of its sign-ins. */
    secrets,
    /** Set-Cookie headers of the coordinator. */
    setCookies,
    /** Cookies of the coordinator by name. */
    getCookies: (): ReadonlyMap<string, string> => new Map(getCookies()),
    /** The session cookie as the browser sends it. */
    get cookie() {
      const name = `${url.startsWith('https:') ? '__Host-' : ''}countersign-session`
      return `${name}=${browser.cookies('localhost').get(name)}`
    },
    get,
    post,
    beginSignIn,
    finishSignIn,
    signIn: async (as: string, query?: string): Promise<URL> => finishSignIn(await beginSignIn(as, query)),
    sign: (txMetadata: TxMetadata, digest: Hex = toDigest(txMetadata)) => post('/sign/digest', { digest, txMetadata }),
  }
}

/** Accounts for the identity provider: `user-0`, `user-1` and so on. */
export function createAccounts(count: number): { sub: string; email: string; name: string }[] {
  return Array.from({ length: count }, (_, index) => {
    const sub = `user-${index}`
    return { sub, email: `${sub}@example.com`, name: `User ${index}` }
  })
}
