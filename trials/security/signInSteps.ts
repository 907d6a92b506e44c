import { createTestBrowser } from '@countersign/testing'
import type { Target } from './startTarget.ts'

/** A sign-in that has come back from the provider and is not finished: everything that an attacker could hand to a victim. */
export type OpenSignIn = {
  callback: URL
  /** Name and value of the login cookie. */
  login: { name: string; value: string }
}

/** Starts a sign-in as somebody and stops before the callback. */
export async function openSignIn(target: Target, as: string, query = ''): Promise<OpenSignIn> {
  const browser = createTestBrowser()
  const first = await browser.request(new URL(`/auth/google${query}`, target.url))
  const [, name = '', value = ''] =
    /^(countersign-login-[0-9a-f]+)=([0-9a-f]+)/.exec(first.headers.getSetCookie()[0] ?? '') ?? []
  let next = new URL(first.headers.get('location') ?? '', target.url)
  for (let hop = 0; hop < 10; hop++) {
    const response = await browser.request(next)
    const location = response.headers.get('location')
    await response.body?.cancel()
    next = location === null ? new URL(`?as=${as}`, next) : new URL(location, next)
    if (next.origin === target.url) return { callback: next, login: { name, value } }
  }
  throw new Error('the provider never came back')
}
