/** As much of a browser as a sign-in needs: cookies by host, and redirects followed one by one. */
export type TestBrowser = {
  request(
    url: string | URL,
    init?: { method?: string; headers?: Record<string, string>; body?: string },
  ): Promise<Response>
  /** Follows redirects until an answer that is none; answers it with its URL. */
  navigate(url: string | URL): Promise<{ url: URL; response: Response }>
  /** Follows redirects up to one that leaves to `origin`, without going there: where an app would be. */
  navigateUntil(url: string | URL, origin: string): Promise<URL>
  cookies(host: string): ReadonlyMap<string, string>
}

const MAX_REDIRECTS = 20

export function createTestBrowser(): TestBrowser {
  // Cookies do not know ports, so that those of all services on localhost share a jar, as in a real browser.
  const jars = new Map<string, Map<string, string>>()

  function jarOf(host: string): Map<string, string> {
    const jar = jars.get(host) ?? new Map<string, string>()
    jars.set(host, jar)
    return jar
  }

  async function request(target: string | URL, init: Parameters<TestBrowser['request']>[1] = {}): Promise<Response> {
    const url = new URL(target)
    const jar = jarOf(url.hostname)
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...init.headers, ...(cookie === '' ? {} : { cookie }) }
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';')
      const [name = '', ...value] = pair.trim().split('=')
      const isOver = attributes.some((attribute) => /^\s*(max-age=0|expires=Thu, 01 Jan 1970)/i.test(attribute))
      if (isOver || value.join('=') === '') jar.delete(name)
      else jar.set(name, value.join('='))
    }
    return response
  }

  async function* follow(start: string | URL): AsyncGenerator<{ url: URL; response: Response; next: URL | undefined }> {
    let url = new URL(start)
    for (let hop = 0; hop < MAX_REDIRECTS; hop++) {
      const response = await request(url)
      const location = response.headers.get('location')
      const next = location === null ? undefined : new URL(location, url)
      yield { url, response, next }
      if (next === undefined) return
      await response.body?.cancel()
      url = next
    }
    throw new Error('too many redirects')
  }

  return {
    request,
    cookies: (host) => jarOf(host),
    async navigate(start) {
      for await (const { url, response, next } of follow(start)) if (next === undefined) return { url, response }
      throw new Error('no answer')
    },
    async navigateUntil(start, origin) {
      for await (const { url, response, next } of follow(start)) {
        if (next?.origin === origin) return next
        if (next === undefined)
          throw new Error(`ended at ${url.pathname} with ${response.status}: ${await response.text()}`)
      }
      throw new Error('never got there')
    },
  }
}
