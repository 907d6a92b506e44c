import { CoordinatorError } from '../errors.ts'

/** OAuth 2.0 (RFC 6749 §4.1.2.1) and OpenID Connect (§3.1.2.6): the only words of a provider that are passed on. */
const REFUSALS = [
  'invalid_request',
  'unauthorized_client',
  'unsupported_response_type',
  'invalid_scope',
  'interaction_required',
  'login_required',
  'consent_required',
  'account_selection_required',
]

/** The second is Apple's word. */
const CANCELLATIONS = ['access_denied', 'user_cancelled_authorize']

const OUTAGES = ['server_error', 'temporarily_unavailable']

/** What the `error` of a callback means. A user who changes their mind is no failure; the rest is thrown. */
export function judgeRefusal(error: string): 'cancelled' {
  if (CANCELLATIONS.includes(error)) return 'cancelled'
  if (OUTAGES.includes(error)) {
    const details = `the provider answered ${error}`
    throw new CoordinatorError('provider_unavailable', 'the provider cannot serve', { details })
  }
  const details = REFUSALS.includes(error) ? `the provider answered ${error}` : undefined
  throw new CoordinatorError('oauth_refused', 'the provider refused', details === undefined ? {} : { details })
}
