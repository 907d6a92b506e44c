import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../test/ports.ts'
import { createRateLimiter, parseRateLimit } from './rateLimit.ts'

describe('parseRateLimit', () => {
  test.each([
    ['off', 'off'],
    ['1/1', { count: 1, seconds: 1 }],
    ['120/60', { count: 120, seconds: 60 }],
  ])('%s', (text, expected) => {
    expect(parseRateLimit(text)).toEqual(expected)
  })

  test.each([
    '',
    'on',
    '0/60',
    '60/0',
    '-1/60',
    '1.5/60',
    '60',
    '60/',
    '/60',
    '60/60/60',
    ' 60/60',
    '1e3/60',
    '60/9999999',
  ])('rejects %j', (text) => {
    expect(parseRateLimit(text)).toBeUndefined()
  })
})

describe('createRateLimiter', () => {
  test('off allows everything without headers', () => {
    expect(createRateLimiter({ limit: 'off', clock: createFakeClock() }).take('a')).toBeUndefined()
  })

  test('admits a caller that waited for Retry-After', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 1, max: 5000 }), (count, seconds) => {
        const clock = createFakeClock()
        const limiter = createRateLimiter({ limit: { count, seconds }, clock })
        for (let index = 0; index < count; index++) expect(limiter.take('a')?.isAllowed).toBe(true)
        const refused = limiter.take('a')
        expect(refused).toMatchObject({ isAllowed: false, remaining: 0 })
        clock.advance((refused?.retryAfterSeconds ?? 0) * 1000)
        expect(limiter.take('a')?.isAllowed).toBe(true)
      }),
      { numRuns: 50 },
    )
  })

  test('admits at most twice the count in any window', () => {
    const clock = createFakeClock()
    const limiter = createRateLimiter({ limit: { count: 10, seconds: 10 }, clock })
    let passed = 0
    for (let ms = 0; ms < 10_000; ms += 10) {
      if (limiter.take('a')?.isAllowed) passed += 1
      clock.advance(10)
    }
    expect(passed).toBeLessThanOrEqual(20)
  })

  test('a clock that is set back neither admits more nor locks callers out', () => {
    const clock = createFakeClock()
    const limiter = createRateLimiter({ limit: { count: 1, seconds: 1 }, clock })
    expect(limiter.take('a')?.isAllowed).toBe(true)
    clock.advance(-3_600_000)
    expect(limiter.take('a')?.isAllowed).toBe(false)
    clock.advance(1000)
    expect(limiter.take('a')?.isAllowed).toBe(true)
  })

  test('limits memory by dropping the least recently used bucket', () => {
    const limiter = createRateLimiter({ limit: { count: 1, seconds: 60 }, clock: createFakeClock(), maxBuckets: 2 })
    limiter.take('a')
    limiter.take('b')
    expect(limiter.take('a')?.isAllowed).toBe(false)
    limiter.take('c')
    expect(limiter.take('a')?.isAllowed).toBe(false)
    expect(limiter.take('b')?.isAllowed).toBe(true)
  })
})
