/**
 * The SDK calls the service by the global `fetch`. In a browser that adds the session's cookie and the origin of the page; here it is
 * made to, for calls of the service only.
 */
export function useSession(apiBaseUrl: string, session: string): void {
  const plainFetch = globalThis.fetch
  globalThis.fetch = (input, init) => {
    const request = new Request(input, init)
    if (new URL(request.url).origin === apiBaseUrl) {
      request.headers.set('cookie', session)
      request.headers.set('origin', apiBaseUrl)
    }
    return plainFetch(request)
  }
}
