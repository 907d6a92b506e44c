import { CoordinatorError } from '../errors.ts'

const MAX_LENGTH = 2048
/** What pages are told in their query. */
const OUTCOME = 'sign_in'

/**
 * Where the browser goes after sign-in: a page on an allowed origin, or the first of these. The address is answered as the
 * parser read it, so that no browser can read another host into it than the one that was compared.
 */
export function toReturnTo(allowedOrigins: readonly string[], asked: readonly string[]): string {
  const [text] = asked
  if (text === undefined) {
    const [first] = allowedOrigins
    if (first === undefined) throw invalid()
    return first
  }
  if (asked.length > 1 || text.length > MAX_LENGTH || !URL.canParse(text)) throw invalid()
  const url = new URL(text)
  // The origin of a blob: URL is that of the page inside it.
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  if (!isWeb || url.username !== '' || url.password !== '' || !allowedOrigins.includes(url.origin)) throw invalid()
  // From a sign-in that was cancelled on the same page: the next one may not be.
  if (url.searchParams.has(OUTCOME)) url.searchParams.delete(OUTCOME)
  return url.href
}

/** The same page, told that the user gave up. */
export function toCancelled(returnTo: string): string {
  const url = new URL(returnTo)
  url.searchParams.set(OUTCOME, 'cancelled')
  return url.href
}

function invalid() {
  const details = 'return_to is not a page on an allowed origin'
  return new CoordinatorError('invalid_request', 'invalid return_to', { details })
}
