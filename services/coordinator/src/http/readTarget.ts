import type { IncomingHttpHeaders } from 'node:http'

export type Target = {
  /** Decoded, for matching routes. Encoded slashes stay encoded. */
  path: string
  /** As it was sent, still percent-encoded. */
  rawPath: string
  /** Includes the question mark. Empty if there is no query. */
  search: string
}

/** A host that every parser reads the same way. */
const PLAIN_HOST = /^[a-z0-9._-]+(?::(?:[1-5]\d{3,4}|[6-9]\d{3}))?$/
/** A target that `URL` would leave unchanged. */
const PLAIN_TARGET = /^\/[!$&-;=?-[\]_a-z~]*$/
const DOT_SEGMENT = /\/\.\.?(?:[/?]|$)/

/** Returns undefined if the target or `Host` is invalid, or if two parsers could read it differently. */
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

/** Keeps `%25` encoded, because the router decodes parameters later. Decoding twice would change them. */
function decodePath(path: string): string {
  try {
    return decodeURI(path.replaceAll('%25', '%2525'))
  } catch {
    return path
  }
}
