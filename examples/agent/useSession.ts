/** Adds the session's cookie and an origin to `fetch` for calls of the service, as a browser does. Returns a function that ends this. */
export function useSession(apiBaseUrl: string, session: string): () => void {
  const plainFetch = globalThis.fetch
  globalThis.fetch = (input, init) => {
    const request = new Request(input, init)
    if (new URL(request.url).origin === apiBaseUrl) {
      request.headers.set('cookie', session)
      request.headers.set('origin', apiBaseUrl)
    }
    return plainFetch(request)
  }
  return () => {
    globalThis.fetch = plainFetch
  }
}
