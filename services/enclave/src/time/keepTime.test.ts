import { expect, test } from 'vitest'
import { createFakeClock } from '../../test/grant/issuers.ts'
import { EnclaveError } from '../errors.ts'
import { keepTime } from './keepTime.ts'
import { createTime } from './time.ts'

const NOW = Date.UTC(2026, 5, 15, 12)
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Keeps the time for `durationMs` of a clock that only the pauses move. */
function setUp({ startedAt = NOW, isKnown = true } = {}) {
  const clock = createFakeClock(startedAt)
  const time = createTime({ clock, elapsedMs: () => 0 })
  if (isKnown) time.learn(NOW)
  const lines: object[] = []
  const write = (line: object) => void lines.push(line)
  async function keepFor(durationMs: number, deps: { fetchDate?(): Promise<number> } = {}) {
    const stopping = new AbortController()
    const asked: number[] = []
    let passedMs = 0
    await keepTime(
      {
        time,
        async fetchDate() {
          asked.push(passedMs)
          return (await deps.fetchDate?.()) ?? NOW + passedMs
        },
        async wait(pauseMs) {
          if (passedMs + pauseMs > durationMs) return stopping.abort()
          clock.advance(pauseMs)
          passedMs += pauseMs
        },
        log: { info: write, warn: write },
      },
      stopping.signal,
    )
    return asked
  }
  return { clock, time, lines, keepFor }
}

test('asks the issuers every hour, and the floor follows', async () => {
  const { time, lines, keepFor } = setUp()
  expect(await keepFor(DAY_MS)).toEqual(Array.from({ length: 24 }, (_, hour) => (hour + 1) * HOUR_MS))
  expect(time.floor()).toBe(NOW + DAY_MS)
  expect(lines).toEqual([])
})

test('makes one request at a time: a slow issuer gets no second one', async () => {
  const { time, keepFor } = setUp()
  const { promise: answered, resolve: answer } = Promise.withResolvers<number>()
  let questions = 0
  const kept = keepFor(2 * HOUR_MS, {
    fetchDate() {
      questions += 1
      return answered
    },
  })
  await new Promise(setImmediate)
  expect([questions, time.floor()]).toEqual([1, NOW])
  answer(NOW + HOUR_MS)
  expect(await kept).toEqual([HOUR_MS, 2 * HOUR_MS])
  expect(time.floor()).toBe(NOW + HOUR_MS)
})

test.each([
  ['65 s beyond clock and floor', HOUR_MS + 65_000, NOW + HOUR_MS + 65_000, []],
  ['a second more', HOUR_MS + 66_000, NOW, [{ msg: 'Refused the issuers’ time', aheadMs: 66_000 }]],
  ['ten years ahead', 3_650 * DAY_MS, NOW, [{ msg: 'Refused the issuers’ time', aheadMs: 3_650 * DAY_MS - HOUR_MS }]],
  ['a day old, out of a cache', -DAY_MS, NOW, []],
])('an answer %s', async (_, offsetMs, floor, warned) => {
  const { time, lines, keepFor } = setUp()
  await keepFor(HOUR_MS, { fetchDate: async () => NOW + offsetMs })
  expect(time.floor()).toBe(floor)
  expect(lines).toEqual(warned)
})

test('an issuer that is always ahead moves the floor at most 65 s beyond the clock', async () => {
  const { clock, time, keepFor } = setUp()
  await keepFor(DAY_MS, { fetchDate: async () => time.now() + 65_000 })
  expect(time.floor()).toBe(clock.now() + 65_000)
})

test('with the clock set back a year, an hour is too far ahead: keeps the floor and logs it', async () => {
  const { time, lines, keepFor } = setUp({ startedAt: NOW - 365 * DAY_MS })
  await keepFor(HOUR_MS)
  expect(time.floor()).toBe(NOW)
  expect(lines).toEqual([{ msg: 'Refused the issuers’ time', aheadMs: HOUR_MS }])
})

test('retries an issuer that is down, and ends on an internal error', async () => {
  const { time, lines, keepFor } = setUp()
  let isDown = true
  await keepFor(2 * HOUR_MS, {
    async fetchDate() {
      if (!isDown) return NOW + 2 * HOUR_MS
      isDown = false
      throw new EnclaveError('issuer_unavailable', 'down', { details: 'unreachable' })
    },
  })
  expect(time.floor()).toBe(NOW + 2 * HOUR_MS)
  expect(lines).toEqual([{ msg: 'Could not learn the time', code: 'issuer_unavailable', reason: 'unreachable' }])
  const fault = async () => {
    throw new TypeError('a fault')
  }
  await expect(keepFor(HOUR_MS, { fetchDate: fault })).rejects.toThrow('a fault')
})

test('makes no request before the time is known, because another part gets the first answer', async () => {
  const { time, keepFor } = setUp({ isKnown: false })
  expect(await keepFor(DAY_MS)).toEqual([])
  expect(time.isKnown()).toBe(false)
})
