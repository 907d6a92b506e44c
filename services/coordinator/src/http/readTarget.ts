import type { IncomingHttpHeaders } from 'node:http'

/** What a request is for. */
export type Target = {
  /** Decoded, as routes match it; slashes that were encoded stay so. */
  path: string
  /** As it was sent, with its percent signs. */
  rawPath: string
  /** With the question mark, unless it is empty. */
  search: string
}

/** A host in which no reader finds anything else. */
const PLAIN_HOST = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/
/** A target that a URL has as it is. */
const PLAIN_TARGET = /^\/[!$&-;=?-[\]_a-z~]*$/
const DOT_SEGMENT = /\/\.\.?(?:[/?]|$)/

/** Undefined where the target or the `Host` is no address, or two readers could differ on what it is. */
export function readTarget(incoming: { url?: string | undefined; headers: IncomingHttpHeaders }): Target | undefined {
  const { url = '', headers } = incoming
  const host = headers.host || 'localhost'
  const end = url.indexOf('?')
  const rawPath = end < 0 ? url : url.slice(0, end)
  if (PLAIN_HOST.test(host) && PLAIN_TARGET.test(url) && !DOT_SEGMENT.test(url)) {
    const search = url.slice(rawPath.length)
    return { path: rawPath, rawPath, search: search === '?' ? '' : search }
  }
  const isAbsolute = /^https?:\/\//.test(url)
  if (rawPath.includes('\\') || !(isAbsolute || url.startsWith('/'))) return undefined
  try {
    const { hostname } = new URL(`http://${host}`)
    if (hostname !== host.replace(/:\d+$/, '').toLowerCase()) return undefined
    const { pathname, search } = new URL(isAbsolute ? url : `http://${host}${url}`)
    return { path: decodePath(pathname), rawPath: pathname, search }
  } catch {
    return undefined
  }
}

/** A percent sign that was sent as `%25` stays so, for the parameters to be decoded once. */
function decodePath(path: string): string {
  try {
    return decodeURI(path.replaceAll('%25', '%2525'))
  } catch {
    return path
  }
}
