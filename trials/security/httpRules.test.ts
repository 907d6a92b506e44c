import { expect, test } from 'vitest'
import { checkAnswer, routeRules } from './httpRules.ts'

const APP = 'http://app.example'
const EVIL = 'http://evil.example'
const ALLOWED = 'access-control-allow-origin'
const CREDENTIALS = 'access-control-allow-credentials'

const headers = {
  [ALLOWED]: APP,
  [CREDENTIALS]: 'true',
  'cache-control': 'no-store',
  'content-type': 'application/problem+json',
  vary: 'Origin',
  'x-content-type-options': 'nosniff',
  'x-request-id': 'id',
}
const problem = { type: 'x', title: 'x', status: 401, code: 'not_authenticated', requestId: 'id', retryable: false }

type Changes = { status?: number; origin?: string; headers?: Record<string, string | undefined>; problem?: object }

/** Checks an answer to `GET /auth/me` without a session. */
function check({ status = 401, origin = APP, ...changes }: Changes): string[] {
  const named = Object.entries({ ...headers, ...changes.headers }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  )
  const seen = { status, headers: new Map(named), body: JSON.stringify({ ...problem, ...changes.problem }) }
  const sent = { method: 'GET', origin, isAllowedOrigin: origin === APP, isHttps: false }
  return checkAnswer(routeRules['/auth/me'], sent, { codes: new Set(['not_authenticated']) }, seen)
}

test('accepts a valid answer', () => expect(check({})).toEqual([]))

test.each<[string, Changes]>([
  ['success instead of an error', { status: 200 }],
  ['another code', { problem: { code: 'session_expired' } }],
  ['an unknown code', { problem: { code: 'oops' } }],
  ['a different status in the body', { problem: { status: 400 } }],
  ['a stack', { problem: { detail: 'at run (/app/src/app.ts:12:3)' } }],
  ['a query', { problem: { detail: 'select * from users' } }],
  ['an extra member', { problem: { stack: '' } }],
  ['another request id', { problem: { requestId: 'other' } }],
  ['another content type', { headers: { 'content-type': 'text/html' } }],
  ['an echo of a foreign origin', { origin: EVIL, headers: { [ALLOWED]: EVIL, [CREDENTIALS]: undefined } }],
  ['credentials for a foreign origin', { origin: EVIL, headers: { [ALLOWED]: undefined } }],
  ['a private answer for any origin', { origin: EVIL, headers: { [ALLOWED]: '*', [CREDENTIALS]: undefined } }],
  ['a missing Vary', { headers: { vary: undefined } }],
  ['an answer that caches may store', { headers: { 'cache-control': 'max-age=60' } }],
  ['sniffing', { headers: { 'x-content-type-options': undefined } }],
  ['the name of the server software', { headers: { 'x-powered-by': 'x' } }],
  ['HSTS without https', { headers: { 'strict-transport-security': 'max-age=1' } }],
])('reports %s', (_, changes) => expect(check(changes)).not.toEqual([]))
