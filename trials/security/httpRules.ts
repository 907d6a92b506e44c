/**
 * The expected answer to each request, derived from the design (§9) and the specification (§4, §5) rather than from the code. If several
 * rules are broken, the answer may name any of them. If one is broken, the request must fail; if none is, it must succeed.
 */

/** Error codes by status. */
const CODES: Readonly<Record<number, string>> = {
  400: `invalid_json invalid_request invalid_digest invalid_tx_metadata oauth_state_invalid oauth_exchange_failed oauth_refused
    invalid_message invalid_typed_data invalid_policy`,
  401: 'not_authenticated session_expired',
  403: `origin_not_allowed grant_invalid key_binding_mismatch policy_refused approvals_missing approval_invalid
    session_not_bound stamp_missing stamp_invalid stamp_time budget_exceeded`,
  404: 'wallet_not_found proof_not_found not_found vault_not_found',
  405: 'method_not_allowed',
  406: 'not_acceptable',
  409: 'wallet_not_provisioned too_many_vaults',
  413: 'body_too_large message_too_large',
  415: 'unsupported_media_type',
  422: 'digest_mismatch unsupported_transaction authorization_not_allowed chain_not_allowed',
  429: 'rate_limited quota_spent',
  500: 'internal',
  502: 'attestation_invalid signature_invalid',
  503: `entropy_unavailable enclave_unavailable collateral_stale database_unavailable provider_unavailable shutting_down
    policy_not_pinned log_unavailable receipt_unavailable budget_time budget_unavailable`,
}

/** Status by error code. */
export const catalogue: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries(CODES).flatMap(([status, codes]) => codes.split(/\s+/).map((code) => [code, Number(status)])),
)

export const MAX_BODY_BYTES = 131_072

export type RouteRule = {
  method: 'GET' | 'POST'
  /** The path also accepts GET, with the same privacy. */
  isReadable?: true
  /** Requires a session; the answers are private. */
  isPrivate?: true
  /** Any page may read it, without credentials. */
  isPublic?: true
  /** Expected body. A form may come from any origin by navigation, because providers post it. */
  takes?: 'nothing' | 'signing' | 'form'
  /** The largest body, if it is not the usual one. */
  maxBytes?: number
  /** The status of success, or the codes with which this path always fails in the trial. */
  success: number | readonly string[]
}

const toRead = (success: RouteRule['success']): RouteRule => ({ method: 'GET', isPublic: true, success })
const toPrivateRead = (success: RouteRule['success']): RouteRule => ({ method: 'GET', isPrivate: true, success })
const toCallOf = (takes: 'nothing' | 'signing', success: RouteRule['success']): RouteRule => ({
  method: 'POST',
  isPrivate: true,
  takes,
  success,
})

/** Rules by path in the service's API description. `toAddress` replaces the placeholders. */
export const routeRules: Readonly<Record<string, RouteRule>> = {
  '/': { method: 'GET', success: 302 },
  '/auth': toRead(200),
  '/auth/me': toPrivateRead(200),
  '/auth/session': toPrivateRead(200),
  '/auth/sessions': toPrivateRead(200),
  '/auth/logout': toCallOf('nothing', 200),
  '/auth/{provider}': { method: 'GET', success: 302 },
  '/auth/{provider}/form': { method: 'POST', takes: 'form', success: 303 },
  // The trial's provider is not for direct sign-in.
  '/auth/{provider}/token': { method: 'POST', takes: 'signing', success: ['not_found'] },
  '/auth/{provider}/callback': { method: 'GET', success: ['oauth_state_invalid'] },
  '/wallet/me': toPrivateRead(200),
  '/wallet/transactions': toPrivateRead(200),
  '/wallet/provision': toCallOf('nothing', 200),
  '/wallet/attest': toCallOf('nothing', 200),
  // The trial's bodies are no valid vault requests, and its address has no vault.
  '/vaults': { ...toCallOf('signing', ['invalid_request']), isReadable: true },
  '/vaults/{address}/attest': toCallOf('nothing', ['vault_not_found']),
  '/vaults/{address}/sign': { method: 'POST', takes: 'signing', maxBytes: 4_096, success: ['invalid_request'] },
  '/vaults/{address}/budget': toPrivateRead(['vault_not_found']),
  '/vaults/{address}/revoke': { method: 'POST', takes: 'signing', maxBytes: 4_096, success: ['invalid_request'] },
  '/sign/digest': toCallOf('signing', 200),
  // The trial's bodies describe transactions.
  '/sign/message': toCallOf('signing', ['invalid_request']),
  '/sign/typed-data': toCallOf('signing', ['invalid_typed_data', 'invalid_request']),
  '/sign/authorization': toCallOf('signing', ['invalid_request']),
  '/proof/{slug}': toRead(200),
  // A pending lookup counts towards the five streams per address, so concurrent requests can be rate limited.
  '/proof/{slug}/events': toRead(['proof_not_found', 'rate_limited']),
  '/proofs/export': toPrivateRead(200),
  '/ipfs/{cid}': toRead(['invalid_request', 'not_found']),
  // The trial's service has no logs.
  '/log': toRead(200),
  '/log/{hash}/checkpoint': toRead(['not_found']),
  '/log/{hash}/tile/{path}': toRead(['not_found']),
  '/health': toRead(200),
  '/health/ready': toRead(200),
  '/health/attestation': toRead(200),
  '/openapi.json': toRead(200),
  '/docs': { method: 'GET', success: 200 },
  '/docs/api': { method: 'GET', success: 200 },
  '/docs/errors': { method: 'GET', success: 200 },
  '/docs/{path}': { method: 'GET', success: ['not_found'] },
}

/** The properties of a request that rules depend on. */
export type RequestFacts = {
  method: string
  origin: 'allowed' | 'foreign' | 'missing'
  fetchSite: string | undefined
  fetchMode: string | undefined
  hasCookie: boolean
  session: 'valid' | 'expired' | 'none'
  isJsonType: boolean
  isFormType: boolean
  bodyLength: number
  /** Codes that the body causes on a route without a body, and on a signing route. */
  bodyFaults: Readonly<Record<'nothing' | 'signing', readonly string[]>>
}

export type Expected = { status: number } | { codes: ReadonlySet<string> }

export function toExpected({ isReadable, ...rule }: RouteRule, facts: RequestFacts): Expected {
  if (isReadable && (facts.method === 'GET' || facts.method === 'HEAD')) {
    return toExpected({ method: 'GET', isPrivate: true, success: 200 }, facts)
  }
  const { method, origin, fetchSite, fetchMode, hasCookie, session, isJsonType, isFormType, bodyLength, bodyFaults } =
    facts
  const isRead = method === 'GET' || method === 'HEAD'
  const codes = new Set<string>()
  if (isRead || (method !== 'OPTIONS' && rule.takes === 'form')) {
    // Subresource requests from foreign pages must not use up the visitor's limits.
    const isPlanted = fetchSite === 'cross-site' && fetchMode !== 'navigate' && origin !== 'allowed'
    if (isPlanted && !rule.isPublic) codes.add('origin_not_allowed')
  } else if (method !== 'OPTIONS') {
    const isForeignSite = fetchSite !== undefined && fetchSite !== 'same-origin' && fetchSite !== 'none'
    if (origin === 'foreign' || (origin === 'missing' && (hasCookie || isForeignSite))) codes.add('origin_not_allowed')
  }
  const isAllowed = rule.method === method || (rule.method === 'GET' && method === 'HEAD')
  if (!isAllowed) return { codes: codes.add('method_not_allowed') }
  if (rule.isPrivate && session !== 'valid') codes.add(session === 'none' ? 'not_authenticated' : 'session_expired')
  if (rule.takes !== undefined && bodyLength > (rule.maxBytes ?? MAX_BODY_BYTES)) codes.add('body_too_large')
  if (rule.takes === 'form') {
    if (!isFormType) codes.add('unsupported_media_type')
  } else if (rule.takes !== undefined) {
    if (bodyLength > 0 && !isJsonType) codes.add('unsupported_media_type')
    for (const code of bodyFaults[rule.takes]) codes.add(code)
  }
  if (typeof rule.success !== 'number') for (const code of rule.success) codes.add(code)
  if (codes.size > 0) return { codes }
  return { status: Number(rule.success) }
}

type Seen = { status: number; headers: ReadonlyMap<string, string>; body: string }

type Sent = { method: string; origin: string | undefined; isAllowedOrigin: boolean; isHttps: boolean }

/** Returns the violations of the rules in an answer. */
export function checkAnswer(rule: RouteRule | undefined, sent: Sent, expected: Expected, seen: Seen): string[] {
  const code = readCode(seen)
  const faults: string[] = []
  if ('status' in expected) {
    if (seen.status !== expected.status) faults.push(`expected ${expected.status}, got ${seen.status} ${code}`)
  } else {
    const isNamed = sent.method === 'HEAD' ? true : expected.codes.has(code)
    const statuses = [...expected.codes].map((each) => catalogue[each])
    if (!isNamed || !statuses.includes(seen.status)) {
      faults.push(`expected one of ${[...expected.codes].join(', ')}, got ${seen.status} ${code}`)
    }
    if (seen.status === 405 && !seen.headers.has('allow')) faults.push('405 without Allow')
  }
  return [...faults, ...checkProblem(sent, seen), ...checkHeaders(rule, sent, seen)]
}

function readCode({ headers, body }: Seen): string {
  if (headers.get('content-type') !== 'application/problem+json' || body === '') return ''
  try {
    return String(JSON.parse(body).code)
  } catch {
    return 'unreadable'
  }
}

const MEMBERS = ['code', 'detail', 'requestId', 'retryable', 'status', 'title', 'type']

/** Checks the body of a failure: problem+json without internal details. */
export function checkProblem(sent: Pick<Sent, 'method'>, { status, headers, body }: Seen): string[] {
  if (status < 400) return []
  const faults: string[] = []
  if (headers.get('content-type') !== 'application/problem+json') faults.push(`${status} is not problem+json`)
  if (headers.get('cache-control') !== 'no-store') faults.push(`${status} may be cached`)
  if (sent.method === 'HEAD') return faults
  let problem: Record<string, unknown> = {}
  try {
    problem = JSON.parse(body)
  } catch {
    return [...faults, `${status} is not JSON`]
  }
  const { code, requestId } = problem
  if (catalogue[String(code)] !== status) faults.push(`status ${status} with code ${code}`)
  if (problem.status !== status) faults.push(`status ${status} with ${problem.status} in the body`)
  if (!Object.keys(problem).every((name) => MEMBERS.includes(name)))
    faults.push(`unknown members: ${Object.keys(problem)}`)
  if (requestId !== headers.get('x-request-id')) faults.push('requestId differs from the header')
  if (/node_modules|\.ts\b|\bat .+:\d+|Error:|\bselect\b.+\bfrom\b|postgres|ECONN/i.test(body))
    faults.push('the body reveals internal details')
  return faults
}

function checkHeaders(rule: RouteRule | undefined, sent: Sent, { status, headers }: Seen): string[] {
  const faults: string[] = []
  const allowed = headers.get('access-control-allow-origin')
  const hasCredentials = headers.has('access-control-allow-credentials')
  const isRead = sent.method === 'GET' || sent.method === 'HEAD'
  const due = sent.isAllowedOrigin ? sent.origin : rule?.isPublic && isRead ? '*' : undefined
  if (allowed !== due) faults.push(`expected Access-Control-Allow-Origin ${due}, got ${allowed}`)
  if (hasCredentials !== sent.isAllowedOrigin) faults.push(`credentials for ${sent.origin}`)
  if (!/(^|, *)Origin(,|$)/.test(headers.get('vary') ?? '')) faults.push('no Vary: Origin')
  if (rule?.isPrivate && headers.get('cache-control') !== 'no-store') faults.push('a private answer may be cached')
  if (headers.get('x-content-type-options') !== 'nosniff') faults.push('no nosniff')
  if (headers.has('strict-transport-security') !== sent.isHttps) faults.push("HSTS doesn't match https")
  for (const name of ['server', 'x-powered-by'])
    if (headers.has(name)) faults.push(`the answer names its software: ${name}`)
  if (headers.get('x-request-id') === undefined) faults.push('no X-Request-Id')
  if (status >= 500) faults.push(`${status}`)
  return faults
}
