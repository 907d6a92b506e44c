import { areaUnderCurve, interquartileRange, median, percentile } from '@countersign/testing/stack'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AttackName } from './attackNames.ts'
import { findLogFaults } from './findLogFaults.ts'
import { checkAnswer, type RequestFacts, routeRules, toExpected } from './httpRules.ts'
import { parseAnswers } from './rawHttp.ts'
import { runSecurity, type SecurityResult } from './runSecurity.ts'

// Fewer of everything, on one backend that is not restarted, and no judgement of times: npm run security.
const NAMES: AttackName[] = [
  ...(['abuse-matrix', 'header-floods', 'open-redirect', 'log-injection', 'slug-timing'] as const),
  ...(['oversized-bodies', 'slow-connections', 'event-streams', 'cookie-tossing'] as const),
  ...(['vault-stolen-session', 'vault-own-coordinator', 'vault-second-enclave'] as const),
]

describe('attacks on a running backend', () => {
  let results: SecurityResult[] = []
  beforeAll(async () => {
    results = await runSecurity({ names: NAMES, size: 'short', seed: 1, say() {} })
  }, 120_000)

  test.each(NAMES)('%s finds no fault', (name) => {
    const result = results[NAMES.indexOf(name)]
    expect(result?.faults).toEqual([])
    expect(result?.tried).toBeGreaterThan(0)
  })
})

describe('what is measured with', () => {
  test('quantiles', () => {
    expect(percentile([3, 1, 2, 4], 1)).toBe(4)
    expect(median([5, 1, 3])).toBe(3)
    expect(interquartileRange([1, 2, 3, 4])).toBe(2)
    expect(percentile([], 0.5)).toBeNaN()
  })

  test('the area under the curve: everything, nothing, and half for ties', () => {
    expect(areaUnderCurve([4, 5, 6], [1, 2, 3])).toBe(1)
    expect(areaUnderCurve([1, 2, 3], [4, 5, 6])).toBe(0)
    expect(areaUnderCurve([1, 1], [1, 1])).toBe(0.5)
    expect(areaUnderCurve([1, 3], [2, 2])).toBe(0.5)
  })

  test('answers of one connection: complete ones alone, whichever way they are framed', () => {
    const first = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b: c\r\n\r\nok'
    const bare = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'
    expect(parseAnswers(`HTTP/1.1 100 Continue\r\n\r\n${first}${bare}`).map(({ status }) => status)).toEqual([200, 400])
    expect(parseAnswers(first)[0]?.headers.get('x-a')).toBe('b: c')
    expect(parseAnswers(first.slice(0, -1))).toEqual([])
    const chunks = 'HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
    expect(parseAnswers(chunks + first)).toHaveLength(2)
  })
})

const FORM: Partial<RequestFacts> = { isJsonType: false, isFormType: true }
/** From a foreign page: one that is opened, and one that is loaded as a part of it. */
const VISIT: Partial<RequestFacts> = { origin: 'foreign', fetchSite: 'cross-site', fetchMode: 'navigate' }
const PLANTED: Partial<RequestFacts> = { ...VISIT, fetchMode: 'no-cors' }

const FINE: RequestFacts = {
  method: 'POST',
  origin: 'allowed',
  fetchSite: undefined,
  fetchMode: undefined,
  hasCookie: true,
  session: 'valid',
  isJsonType: true,
  isFormType: false,
  bodyLength: 2,
  bodyFaults: { nothing: [], signing: [] },
}
const APP = 'http://localhost:5173'

function ruleOf(path: string) {
  const rule = routeRules[path]
  if (rule === undefined) throw new Error(`no rule for ${path}`)
  return rule
}

describe('the rules', () => {
  const codesOf = (path: string, changes: Partial<RequestFacts>) => {
    const expected = toExpected(ruleOf(path), { ...FINE, ...changes })
    return 'codes' in expected ? [...expected.codes] : expected.status
  }

  test.each<[string, string, Partial<RequestFacts>, number | string[]]>([
    ['nothing is wrong', '/sign/digest', {}, 200],
    ['a foreign page', '/sign/digest', { origin: 'foreign' }, ['origin_not_allowed']],
    ['no origin but a cookie', '/auth/logout', { origin: 'missing' }, ['origin_not_allowed']],
    [
      'no origin, no cookie',
      '/auth/logout',
      { origin: 'missing', hasCookie: false, session: 'none' },
      ['not_authenticated'],
    ],
    ['an expired session', '/wallet/provision', { session: 'expired' }, ['session_expired']],
    ['a form', '/wallet/provision', { isJsonType: false }, ['unsupported_media_type']],
    ['a provider’s form', '/auth/{provider}/form', { ...FORM, ...VISIT }, 303],
    ['a form that no person sees', '/auth/{provider}/form', { ...FORM, ...PLANTED }, ['origin_not_allowed']],
    ['JSON for a form', '/auth/{provider}/form', {}, ['unsupported_media_type']],
    ['no body of any type', '/wallet/provision', { isJsonType: false, bodyLength: 0 }, 200],
    ['a byte too many', '/sign/digest', { bodyLength: 131_073 }, ['body_too_large']],
    ['another method', '/auth/me', { method: 'DELETE' }, ['method_not_allowed']],
    ['a read from a foreign page', '/auth/me', { method: 'GET', origin: 'foreign' }, 200],
    ['a read that a foreign page plants', '/auth/me', { method: 'GET', ...PLANTED }, ['origin_not_allowed']],
    ['a public read that it plants', '/proof/{slug}', { method: 'GET', ...PLANTED }, 200],
    ['a page that is opened from a foreign page', '/auth/{provider}', { method: 'GET', ...VISIT }, 302],
  ])('%s', (_, path, changes, expected) => {
    expect(codesOf(path, changes)).toEqual(expected)
  })

  const headers = {
    'access-control-allow-origin': APP,
    'access-control-allow-credentials': 'true',
    'cache-control': 'no-store',
    'content-type': 'application/problem+json',
    vary: 'Origin',
    'x-content-type-options': 'nosniff',
    'x-request-id': 'id',
  }
  const problem = { type: 'x', title: 'x', status: 401, code: 'not_authenticated', requestId: 'id', retryable: false }

  function check(changes: {
    status?: number
    headers?: Record<string, string | undefined>
    problem?: object
    origin?: string
  }) {
    const { status = 401, origin = APP } = changes
    const named = Object.entries({ ...headers, ...changes.headers }).filter(([, value]) => value !== undefined)
    const seen = {
      status,
      headers: new Map(named as [string, string][]),
      body: JSON.stringify({ ...problem, ...changes.problem }),
    }
    const sent = { method: 'GET', origin, isAllowedOrigin: origin === APP, isHttps: false }
    return checkAnswer(ruleOf('/auth/me'), sent, { codes: new Set(['not_authenticated']) }, seen)
  }

  test('a good answer has no fault', () => expect(check({})).toEqual([]))

  test.each<[string, Parameters<typeof check>[0]]>([
    ['success where refusal is due', { status: 200 }],
    ['another code', { problem: { code: 'session_expired' } }],
    ['a code of no catalogue', { problem: { code: 'oops' } }],
    ['another status inside', { problem: { status: 400 } }],
    ['a stack', { problem: { detail: 'at run (/app/src/app.ts:12:3)' } }],
    ['a query', { problem: { detail: 'select * from users' } }],
    ['a member more', { problem: { stack: '' } }],
    ['another request id', { problem: { requestId: 'other' } }],
    ['no problem+json', { headers: { 'content-type': 'text/html' } }],
    [
      'an echo of a foreign origin',
      { origin: 'http://evil.example', headers: { 'access-control-allow-origin': 'http://evil.example' } },
    ],
    ['credentials for any origin', { origin: 'http://evil.example', headers: { 'access-control-allow-origin': '*' } }],
    [
      'a private answer for strangers',
      {
        origin: 'http://evil.example',
        headers: { 'access-control-allow-origin': '*', 'access-control-allow-credentials': undefined },
      },
    ],
    ['no Vary', { headers: { vary: undefined } }],
    ['something to keep', { headers: { 'cache-control': 'max-age=60' } }],
    ['sniffing', { headers: { 'x-content-type-options': undefined } }],
    ['the name of its software', { headers: { 'x-powered-by': 'x' } }],
    ['HSTS without https', { headers: { 'strict-transport-security': 'max-age=1' } }],
  ])('%s is a fault', (_, changes) => expect(check(changes).length).toBeGreaterThan(0))
})

describe('lines of logs', () => {
  const line = { level: 30, time: '2026-01-01T00:00:00.000Z', msg: 'Answered', requestId: 'mark-1', status: 200 }

  test('an id of the caller’s own is fine', () => expect(findLogFaults(JSON.stringify(line), 'mark')).toEqual([]))

  test.each<[string, string]>([
    ['half a line', '{"level":30,'],
    ['words', 'The user aborted a request.'],
    ['a list', '[]'],
    ['a field of its own', JSON.stringify({ ...line, cookie: 'a' })],
    ['planted text', JSON.stringify({ ...line, route: '/mark' })],
    ['planted text in a message', JSON.stringify({ ...line, msg: 'mark' })],
    ['an id that is none', JSON.stringify({ ...line, requestId: 'mark 1' })],
    ['a line break in a field', JSON.stringify({ ...line, reason: 'a\nb' })],
    ['a colour', JSON.stringify({ ...line, reason: '\u001b[31m' })],
  ])('%s is a fault', (_, text) => expect(findLogFaults(text, 'mark').length).toBeGreaterThan(0))
})
