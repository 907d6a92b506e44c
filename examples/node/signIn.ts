const SESSION = 'countersign-session'

/**
 * Signs in at the identity provider of `npm run dev`, where a name is enough, and gives the session. Any other provider asks a
 * person, in a browser: there, a script needs the session of somebody who signed in.
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
      // An empty one takes the cookie away.
      if (value) cookies.set(key, value)
      else cookies.delete(key)
    }
    const session = cookies.get(SESSION)
    if (session) return `${SESSION}=${session}`
    const location = response.headers.get('location')
    if (location === null && url.origin === new URL(apiBaseUrl).origin)
      throw new Error(`no sign-in: ${await response.text()}`)
    // Without a redirect it is the page of the provider, where one says who one is.
    url = location === null ? new URL(`?as=${encodeURIComponent(name)}`, url) : new URL(location, url)
  }
  throw new Error('no sign-in: too many redirects')
}
