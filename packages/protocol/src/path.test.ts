import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { isSlug, toMethodAndPath } from './path.ts'

describe('toMethodAndPath', () => {
  test('takes method and path from the name of the endpoint', () => {
    expect(toMethodAndPath('GET /auth/me')).toEqual({ method: 'GET', path: '/auth/me' })
    expect(toMethodAndPath('POST /sign/digest')).toEqual({ method: 'POST', path: '/sign/digest' })
  })

  test('fills in parameters', () => {
    expect(toMethodAndPath('GET /proof/:slug/events', { slug: 'a_b-c' }).path).toBe('/proof/a_b-c/events')
    expect(toMethodAndPath('GET /auth/:provider/callback', { provider: 'google' }).path).toBe('/auth/google/callback')
  })

  test.each([
    ['nothing', ''],
    ['a dot', '.'],
    ['two dots', '..'],
    ['a slash', 'a/b'],
    ['an encoded slash', 'a%2fb'],
    ['a question mark', 'a?b'],
    ['a line break', 'a\n'],
    ['a pattern of `replace`', '$&'],
    ['half a surrogate pair', '\ud800'],
  ])('%s cannot be a parameter: it would be another path', (_name, slug) => {
    expect(() => toMethodAndPath('GET /proof/:slug', { slug })).toThrow(withCode('invalid_request'))
  })
})

describe('isSlug', () => {
  test.each(['AAAAAAAAAAAAAAAAAAAAAA', 'abcdefghijklmnopqrst_w', 'ABCDEFGHIJKLMNOPQRST-Q', '012345678901234567890g'])(
    'accepts %s',
    (slug) => {
      expect(isSlug(slug)).toBe(true)
      expect(Buffer.from(slug, 'base64url').toString('base64url')).toBe(slug)
    },
  )

  test.each([
    ['nothing', ''],
    ['21 characters', 'A'.repeat(21)],
    ['23 characters', 'A'.repeat(23)],
    ['bits behind the last byte', `${'A'.repeat(21)}B`],
    ['base64 of the other alphabet', `${'+'.repeat(21)}A`],
    ['padding', `${'A'.repeat(20)}==`],
    ['a line break at the end', `${'A'.repeat(22)}\n`],
    ['no text', 7],
    ['a list of one', ['A'.repeat(22)]],
  ])('%s is none', (_name, slug) => {
    expect(isSlug(slug)).toBe(false)
  })
})
