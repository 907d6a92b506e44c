import { expect, test } from 'vitest'
import { createPasswordGuard, STAGING_COOKIE } from './passwordGuard.ts'

const password = 'correct horse battery: staple'
const guard = createPasswordGuard(password)
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const check = (headers: { authorization?: string; cookie?: string }) =>
  guard.check({ authorization: headers.authorization, cookie: headers.cookie })

test('lets in by Basic, with any name, and by the cookie that follows from the password', () => {
  expect(check({ authorization: basic(`anybody:${password}`) })).toBe('admitted')
  expect(check({ authorization: basic(`:${password}`) })).toBe('admitted')
  expect(check({ cookie: `a=b; ${STAGING_COOKIE}=${guard.cookie}; c=d` })).toBe('admitted')
  expect(createPasswordGuard(password).cookie).toBe(guard.cookie)
  expect(guard.cookie).toMatch(/^[0-9a-f]{64}$/)
})

test.each<[string, string, { authorization?: string; cookie?: string }]>([
  ['nothing', 'none', {}],
  ['another scheme', 'none', { authorization: `Bearer ${password}` }],
  ['bytes that are no Basic', 'none', { authorization: 'Basic {}' }],
  ['a password of any length', 'none', { authorization: basic(`:${'x'.repeat(4096)}`) }],
  ['another password', 'wrong', { authorization: basic('mock:correct horse battery') }],
  ['a longer password', 'wrong', { authorization: basic(`mock:${password}.`) }],
  ['no password', 'wrong', { authorization: basic('mock:') }],
  ['the password as a cookie', 'none', { cookie: `${STAGING_COOKIE}=${password}` }],
  ['the cookie of another password', 'none', { cookie: `${STAGING_COOKIE}=${'ab'.repeat(32)}` }],
  ['a cookie of another name', 'none', { cookie: `x${STAGING_COOKIE}=${guard.cookie}` }],
  ['half a cookie', 'none', { cookie: `${STAGING_COOKIE}=${guard.cookie.slice(1)}` }],
])('%s lets nobody in', (_, expected, headers) => {
  expect(check(headers)).toBe(expected)
})

test('the cookie does not give the password away', () => {
  expect(guard.cookie).not.toContain(password)
  expect(createPasswordGuard(`${password} `).cookie).not.toBe(guard.cookie)
})
