export type TestBrowser = ReturnType<typeof createTestBrowser>

type Init = { method?: string; headers?: Record<string, string>; body?: string }

const MAX_REDIRECTS = 20

/** The parts of a browser that a sign-in needs: cookies by host and redirects. */
export function createTestBrowser() {
  // Cookies ignore ports, so all services on localhost share a jar, as in a real browser.
  const jars = new Map<string, Map<string, string>>()

  function jarOf(host: string): Map<string, string> {
    const jar = jars.get(host) ?? new Map<string, string>()
    jars.set(host, jar)
    return jar
  }

  async function request(target: string | URL, init: Init = {}): Promise<Response> {
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
    cookies: (host: string): ReadonlyMap<string, string> => jarOf(host),
    /** Follows redirects. Returns the final response with its URL. */
    async navigate(start: string | URL): Promise<{ url: URL; response: Response }> {
      for await (const { url, response, next } of follow(start)) if (next === undefined) return { url, response }
      throw new Error('redirects ended without a response')
    },
    /** Follows redirects up to one that leads to `origin`, and returns its URL without requesting it. */
    async navigateUntil(start: string | URL, origin: string): Promise<URL> {
      for await (const { url, response, next } of follow(start)) {
        if (next?.origin === origin) return next
        if (next === undefined)
          throw new Error(
            `expected a redirect to ${origin}, got ${response.status} from ${url.pathname}: ${await response.text()}`,
          )
      }
      throw new Error(`expected a redirect to ${origin}`)
    },
  }
}
