import { ServiceError } from '@countersign/sdk'
import { HttpRequestError } from 'viem'
import { describe, expect, test } from 'vitest'
import { explainError, isOfEarlierUser, toServiceError } from './explainError.ts'
import { toAgo, toChainName, toCoin, toDateTime, toShortAddress, toShortAmount, toShortHex } from './format.ts'

describe('toShortAmount', () => {
  test.each([
    [0n, '0'],
    [1n, '< 0.000001'],
    [10n ** 12n, '0.000001'],
    [10n ** 18n, '1'],
    [1_999_999_999_999_999_999n, '1.999999'],
    [1_234_567n * 10n ** 18n, '1\u202f234\u202f567'],
    [10n ** 18n + 1n, '1'],
  ])('%d wei', (wei, text) => {
    expect(toShortAmount(wei, 18)).toBe(text)
  })
})

test('toShortAmount uses the token’s decimals', () => {
  expect(toShortAmount(1_234_567n, 6)).toBe('1.234567')
  expect(toShortAmount(1_234_567n, 0)).toBe('1\u202f234\u202f567')
  expect(toShortAmount(1n, 8)).toBe('< 0.000001')
})

test('toShortAddress adds the checksum', () => {
  expect(toShortAddress('0x70997970c51812dc3a010c7d01b50e0d17dc79c8')).toBe('0x709979…dc79C8')
})

test('toDateTime uses local time and names the zone', () => {
  expect(toDateTime('2026-03-10T11:57:00')).toMatch(/^10 March 2026 at 11:57 \S+/)
})

test('toDateTime returns an invalid time unchanged instead of throwing', () => {
  expect(toDateTime('2026-13-32T25:61:61.000Z')).toBe('2026-13-32T25:61:61.000Z')
})

test('toShortHex keeps both ends', () => {
  expect(toShortHex(`0x${'ab'.repeat(20)}`)).toBe('0xababab…ababab')
  expect(toShortHex('0xabcdef')).toBe('0xabcdef')
})

describe('toAgo', () => {
  const now = Date.parse('2026-03-10T12:00:00Z')
  test.each([
    ['2026-03-10T11:59:40Z', 'just now'],
    ['2026-03-10T12:00:05Z', 'just now'],
    ['2026-03-10T11:57:00Z', '3 minutes ago'],
    ['2026-03-10T11:00:00Z', '1 hour ago'],
    ['2026-03-09T12:00:01Z', '23 hours ago'],
    ['2026-03-08T11:00:00', '8 Mar, 11:00'],
    ['2025-01-01T12:00:00', '1 Jan 2025, 12:00'],
  ])('%s', (time, text) => {
    expect(toAgo(time, now)).toBe(text)
  })
})

test('toChainName and toCoin use the configured name, then the known one, then the number', () => {
  expect(toChainName({ chainId: 1, chainName: 'Ours' })).toBe('Ours')
  expect(toChainName({ chainId: 84532 })).toBe('Base Sepolia')
  expect(toChainName({ chainId: 5 })).toBe('Chain 5')
  expect([1, 137, 5].map((chainId) => toCoin({ chainId }))).toEqual(['ETH', 'POL', 'coins'])
})

describe('explainError', () => {
  test('reports a lost response without retry as possibly signed, but not a timed-out query', () => {
    const explain = (retryable: boolean) => explainError(new ServiceError('request_timeout', 'x', { retryable }))
    expect(explain(false).title).toBe('This may have been signed')
    expect(`${explain(true).title} ${explain(true).advice}`).not.toContain('signed')
  })

  test('reports nothing signed after a user switch, unless the response was lost before', () => {
    const explain = (retryable?: boolean) => explainError(new ServiceError('wallet_changed', 'x', { retryable }))
    expect(explain().advice).toContain('Nothing was signed')
    expect(explain(false).title).toBe('This may have been signed')
    // The page now shows a different user's history.
    expect(explain(false).advice).toContain('Sign in to your own account')
  })

  test.each(['wallet_not_ready', 'vault_not_found', 'not_authenticated', 'session_expired'])(
    'does not point to the history after a lost response and %s',
    (code) => {
      const cause = new ServiceError(code, 'x')
      const lost = (retryable: boolean) => new ServiceError('network_unreachable', 'x', { retryable, cause })
      expect(explainError(lost(false)).advice).toContain('Sign in to your own account')
      expect([lost(false), lost(true), cause].map(isOfEarlierUser)).toEqual([true, false, false])
    },
  )

  test('points to the history after two lost responses', () => {
    const cause = new ServiceError('request_timeout', 'x')
    const lost = new ServiceError('network_unreachable', 'x', { retryable: false, cause })
    expect(isOfEarlierUser(lost)).toBe(false)
    expect(explainError(lost).advice).toContain('check your history')
  })

  test('uses the service’s words for an unknown code', () => {
    const words = explainError(new ServiceError('brand_new', 'Out of stamps', { retryable: true }))
    expect(words).toEqual({ title: 'Out of stamps', advice: 'Try again in a moment.' })
  })

  test('does not treat an inherited member as a known code', () => {
    expect(explainError(new ServiceError('constructor', 'x')).title).toBe('x')
  })
})

describe('toServiceError', () => {
  test('leaves out the node’s URL, which may contain a key', () => {
    const url = 'https://rpc.example.com/secret-key'
    const error = toServiceError(new HttpRequestError({ url, cause: new Error('Failed to fetch') }))
    expect(error).toMatchObject({ code: 'rpc_failed', details: 'Failed to fetch', retryable: true })
    expect(`${error.message} ${error.details}`).not.toContain('secret-key')
  })

  test('keeps SDK errors and converts others to internal', () => {
    const error = new ServiceError('rate_limited', 'Too many requests')
    expect(toServiceError(error)).toBe(error)
    expect(toServiceError('what')).toMatchObject({ code: 'internal' })
  })
})
