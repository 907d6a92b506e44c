const SESSION = 'countersign-session'

/**
 * Signs in at the identity provider of `npm run dev`, where a name is enough, and returns the session cookie. Other providers need a
 * browser: copy the session of a user who signed in there.
 */
export async function signIn(apiBaseUrl: string, name: string): Promise<string> {
  const cookies = new Map<string, string>()
  let url = new URL('/auth/google', apiBaseUrl)
  for (let hop = 0; hop < 20; hop++) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, key, value] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (key === undefined) continue
      // An empty value deletes the cookie.
      if (value) cookies.set(key, value)
      else cookies.delete(key)
    }
    const session = cookies.get(SESSION)
    if (session) return `${SESSION}=${session}`
    const location = response.headers.get('location')
    if (location === null && url.origin === new URL(apiBaseUrl).origin)
      throw new Error(`sign-in failed: ${await response.text()}`)
    // Without a redirect, this is the provider's page that asks for a name.
    url = location === null ? new URL(`?as=${encodeURIComponent(name)}`, url) : new URL(location, url)
  }
  throw new Error('sign-in failed: too many redirects')
}
