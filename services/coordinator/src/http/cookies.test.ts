import { describe, expect, test } from 'vitest'
import { listLoginCookies, readLoginCookie, readSessionCookie, readSessionSecret } from './cookies.ts'

const rules = { isHttps: true, sameSite: 'lax' } as const
const plain = { isHttps: false, sameSite: 'lax' } as const
const sid = 'a1'.repeat(32)
const id = '0123456789abcdef'

describe('the session cookie', () => {
  test.each([
    `__Host-countersign-session=${sid}`,
    `a=b;__Host-countersign-session=${sid} ; c`,
    `a="; \t__Host-countersign-session=${sid}`,
  ])('is found in %j', (header) => expect(readSessionCookie(rules, header)).toBe(sid))

  test.each([
    undefined,
    '',
    `countersign-session=${sid}`,
    `__host-countersign-session=${sid}`,
    `__Host-countersign-session="${sid}"`,
    `__Host-countersign-session=${sid.toUpperCase()}`,
    `__Host-countersign-session=${sid}; __Host-countersign-session=${sid}`,
    `__Host-countersign-session=${sid}; __Host-countersign-session=`,
  ])('is not in %j', (header) => expect(readSessionCookie(rules, header)).toBeUndefined())

  // For JavaScript these are white space, too. A name with one is a different name, and its prefix is not at the start.
  test.each(['\u00a0', '\u000b', '\u000c', '\ufeff', '\u2000', '\u2028', '\u3000'])(
    'is not a cookie whose name begins or ends with %j',
    (space) => {
      for (const name of [`${space}__Host-countersign-session`, `__Host-countersign-session${space}`]) {
        expect(readSessionCookie(rules, `${name}=${sid}`)).toBeUndefined()
      }
      expect(readSessionCookie(rules, `__Host-countersign-session=${sid}${space}`)).toBeUndefined()
      // It doesn't hide the real cookie either.
      expect(readSessionCookie(rules, `${space}__Host-countersign-session=00; __Host-countersign-session=${sid}`)).toBe(
        sid,
      )
    },
  )
})

describe('the session secret', () => {
  const other = 'b2'.repeat(32)
  const read = (authorization?: string) => {
    const headers: Record<string, string | undefined> = { cookie: `__Host-countersign-session=${sid}`, authorization }
    return readSessionSecret(rules, { header: (name) => headers[name] })
  }

  test('is in the header, or in the cookie without a header', () => {
    expect([read(`Session ${other}`), read()]).toEqual([other, sid])
  })

  test.each([
    '',
    'Session',
    'Session ',
    `Session  ${other}`,
    `Session ${other} `,
    ` Session ${other}`,
    `Session ${other.toUpperCase()}`,
    `Session ${other}00`,
    `Session ${other.slice(2)}`,
    `Session "${other}"`,
    `session ${other}`,
    `Bearer ${other}`,
    `Basic ${other}`,
    other,
    `Session ${other}, Session ${other}`,
    `Session ${other}\n`,
  ])('is not in the header %j, and then not in the cookie either', (header) => {
    expect(read(header)).toBeUndefined()
  })
})

test('a login cookie belongs to one sign-in, and white space does not change the name', () => {
  expect(readLoginCookie(plain, `countersign-login-${id}=${sid}`, id)).toBe(sid)
  expect(readLoginCookie(plain, `\u00a0countersign-login-${id}=${sid}`, id)).toBeUndefined()
  expect(listLoginCookies(plain, `\u00a0countersign-login-${id}=1; countersign-login-${id}=2`)).toEqual([
    `countersign-login-${id}`,
  ])
})
