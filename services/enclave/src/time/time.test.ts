import { describe, expect, test } from 'vitest'
import { createFakeClock } from '../../test/grant/issuers.ts'
import { EnclaveError } from '../errors.ts'
import { learnTime } from './learnTime.ts'
import { createTime } from './time.ts'

const NOW = Date.UTC(2026, 5, 15, 12)
const YEAR_MS = 31_536_000_000
const unknown = expect.objectContaining({ code: 'time_unknown' })

describe('the floor', () => {
  test('is unknown before the issuers have given the time', () => {
    const time = createTime({ clock: createFakeClock(NOW), elapsedMs: () => 0 })
    expect(() => time.assertKnown()).toThrow(unknown)
    expect(() => time.bootedAt()).toThrow(unknown)
    time.learn(NOW)
    expect(() => time.assertKnown()).not.toThrow()
    expect(time.bootedAt()).toBe(NOW)
  })

  test('ignores a clock that is behind, at the start and later', () => {
    const clock = createFakeClock(NOW - YEAR_MS)
    const time = createTime({ clock, elapsedMs: () => 0 })
    time.learn(NOW)
    expect([time.now(), time.bootedAt()]).toEqual([NOW, NOW])
    clock.advance(YEAR_MS + 1_000)
    expect(time.now()).toBe(NOW + 1_000)
    clock.advance(-YEAR_MS)
    expect(time.now()).toBe(NOW)
  })

  test('uses a clock that is ahead: expiries come early, never late', () => {
    const time = createTime({ clock: createFakeClock(NOW + YEAR_MS), elapsedMs: () => 0 })
    time.learn(NOW)
    expect([time.now(), time.bootedAt()]).toEqual([NOW + YEAR_MS, NOW + YEAR_MS])
  })

  test('accepts a first answer far ahead, which opens nothing, because no token of today is newer than that boot', () => {
    const clock = createFakeClock(NOW)
    const time = createTime({ clock, elapsedMs: () => 0 })
    time.learn(NOW + 10 * YEAR_MS)
    expect([time.now(), time.bootedAt()]).toEqual([NOW + 10 * YEAR_MS, NOW + 10 * YEAR_MS])
    expect(time.learn(NOW)).toBe(0)
    expect(time.bootedAt()).toBe(NOW + 10 * YEAR_MS)
  })

  test('verified times raise it by up to 65 s, and nothing lowers it', () => {
    const time = createTime({ clock: createFakeClock(NOW - YEAR_MS), elapsedMs: () => 0 })
    time.learn(NOW)
    expect(time.raise(NOW + 65_001)).toBe(false)
    expect(time.now()).toBe(NOW)
    expect(time.raise(NOW + 65_000)).toBe(true)
    expect(time.now()).toBe(NOW + 65_000)
    expect(time.raise(NOW)).toBe(true)
    time.learn(NOW)
    expect(time.floor()).toBe(NOW + 65_000)
  })

  test('samples raise it, too, but do not admit later samples; other times do', () => {
    const clock = createFakeClock(NOW)
    const time = createTime({ clock, elapsedMs: () => 0 })
    time.learn(NOW - 1_000)
    expect(time.latestSample()).toBe(NOW + 65_000)
    time.raiseBySample(NOW + 65_000)
    time.raiseBySample(NOW)
    expect([time.now(), time.floor(), time.latestSample()]).toEqual([NOW + 65_000, NOW + 65_000, NOW + 65_000])
    clock.advance(10_000)
    expect(time.latestSample()).toBe(NOW + 75_000)
    time.raise(NOW + 20_000)
    expect([time.floor(), time.latestSample()]).toEqual([NOW + 65_000, NOW + 85_000])
  })

  describe('advances with monotonic time', () => {
    const HOUR_MS = 3_600_000
    function setUp() {
      const clock = createFakeClock(NOW)
      let elapsed = 5_000
      const time = createTime({ clock, elapsedMs: () => elapsed })
      const pass = (durationMs: number) => {
        elapsed += durationMs
      }
      time.learn(NOW)
      return { clock, time, pass }
    }

    test.each([
      ['stopped', 0],
      ['set back', -YEAR_MS],
    ])('while the clock is %s', (_, advanceMs) => {
      const { clock, time, pass } = setUp()
      clock.advance(advanceMs)
      pass(12 * HOUR_MS)
      // A thousandth slower: 43.2 s in 12 h.
      const later = NOW + 12 * HOUR_MS - 43_200
      expect([time.now(), time.floor(), time.latestSample()]).toEqual([later, later, later + 65_000])
      expect(time.raise(later + 10_000)).toBe(true)
      pass(1_000)
      expect(time.now()).toBe(later + 10_999)
    })

    test('never overtakes a correct clock, even if the counter runs fast', () => {
      const { clock, time, pass } = setUp()
      clock.advance(30 * 24 * HOUR_MS)
      pass(30 * 24 * HOUR_MS * 1.0009)
      expect(time.now()).toBe(clock.now())
    })

    test('but not from a sample’s time, so a source’s lead ends by itself', () => {
      const { clock, time, pass } = setUp()
      time.raiseBySample(NOW + 65_000)
      pass(65_000)
      clock.advance(65_000)
      expect(time.now()).toBe(NOW + 65_000)
    })
  })

  test('a boot during a second counts from the next one, because tokens of that second may be older', () => {
    const clock = createFakeClock(NOW + 400)
    const time = createTime({ clock, elapsedMs: () => 0 })
    expect(time.learn(NOW)).toBe(600)
    expect(() => time.assertKnown()).not.toThrow()
    expect(() => time.bootedAt()).toThrow(unknown)
    clock.advance(600)
    expect(time.bootedAt()).toBe(NOW + 1_000)
  })
})

describe('learning it', () => {
  function setUp(answers: (number | Error)[], startedAt = NOW) {
    const clock = createFakeClock(startedAt)
    const time = createTime({ clock, elapsedMs: () => 0 })
    const waits: number[] = []
    const lines: object[] = []
    const stopping = new AbortController()
    const write = (line: object) => void lines.push(line)
    const learning = () =>
      learnTime(
        {
          time,
          clock,
          async fetchDate() {
            const answer = answers.shift()
            if (typeof answer === 'number') return answer
            throw answer
          },
          async wait(durationMs) {
            waits.push(durationMs)
            clock.advance(durationMs)
            if (answers.length === 0) stopping.abort()
          },
          log: { info: write, warn: write },
        },
        stopping.signal,
      )
    return { clock, time, waits, lines, learning }
  }
  const down = () => new EnclaveError('issuer_unavailable', 'down', { details: 'unreachable' })

  test('retries with growing pauses until there is an answer', async () => {
    const { time, waits, lines, learning } = setUp([...Array.from({ length: 9 }, down), NOW + 60_000])
    await learning()
    expect(waits.slice(0, -1)).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000])
    expect(lines[0]).toEqual({ msg: 'Could not learn the time', code: 'issuer_unavailable', reason: 'unreachable' })
    expect(time.bootedAt()).toBe(NOW + 60_000)
  })

  test('ends when sessions can be opened, and logs a clock that is behind', async () => {
    const { time, waits, lines, learning } = setUp([NOW + 5_000], NOW + 400)
    await learning()
    expect(waits).toEqual([0])
    expect(lines).toEqual([{ msg: 'The clock is behind the issuers’', behindMs: 4_600 }])
    expect(time.bootedAt()).toBe(NOW + 5_000)
  })

  test.each([
    ['an hour', 3_600_000, 3_600_000],
    ['a year, longer than timers can be', YEAR_MS, 2_147_483_647],
  ])(
    'logs and waits if the clock was ahead at the start by %s and was set back since',
    async (_, aheadMs, waitedMs) => {
      const { clock, time, waits, lines, learning } = setUp([NOW], NOW + aheadMs)
      clock.advance(-aheadMs)
      await learning()
      expect(waits).toEqual([waitedMs])
      expect(lines).toEqual([{ msg: 'The clock was set back since the start', leftMs: aheadMs }])
      clock.advance(-waitedMs)
      expect(() => time.bootedAt()).toThrow(unknown)
    },
  )

  test('ends when the enclave stops', async () => {
    const { time, learning } = setUp([down()])
    await learning()
    expect(() => time.assertKnown()).toThrow(unknown)
  })

  test('ends on an internal error', async () => {
    await expect(setUp([new TypeError('a fault')]).learning()).rejects.toThrow('a fault')
  })
})
