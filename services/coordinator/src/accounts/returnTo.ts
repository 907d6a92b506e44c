import { MAX_RETURN_TO_LENGTH } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'

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
  if (asked.length > 1 || !URL.canParse(text)) throw invalid()
  const url = new URL(text)
  // The origin of a blob: URL is that of the page inside it.
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  if (!isWeb || url.username !== '' || url.password !== '' || !allowedOrigins.includes(url.origin)) throw invalid()
  // From a sign-in on the same page that came to nothing: the next one may not.
  if (url.searchParams.has(OUTCOME)) url.searchParams.delete(OUTCOME)
  // As the parser wrote it, which may be longer: that is what is kept, and read again at the callback.
  if (url.href.length > MAX_RETURN_TO_LENGTH) {
    throw invalid(`return_to is longer than ${MAX_RETURN_TO_LENGTH} characters`)
  }
  return url.href
}

/** The same page, told that nobody is signed in: the user gave up, or was shown why it failed. */
export function toUnfinished(returnTo: string, outcome: 'cancelled' | 'failed'): string {
  const url = new URL(returnTo)
  url.searchParams.set(OUTCOME, outcome)
  return url.href
}

function invalid(details = 'return_to is not a page on an allowed origin') {
  return new CoordinatorError('invalid_request', 'invalid return_to', { details })
}
