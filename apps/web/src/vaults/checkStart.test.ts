import { afterEach, expect, test, vi } from 'vitest'
import { checkStart } from './policySources.ts'

afterEach(() => vi.unstubAllGlobals())

const MINUTE_MS = 60_000
const NOW = Date.parse('2026-01-01T12:00:00.000Z')
const [fetchedAt, expiresAt] = [-9, 51].map((minutes) => new Date(NOW + minutes * MINUTE_MS).toISOString())

function answer(body: unknown, status = 200) {
  const asked: string[] = []
  vi.stubGlobal('fetch', async (url: string) => {
    asked.push(url)
    return Response.json(body, { status })
  })
  return asked
}

const startsIn = (minutes: number) => ({ schedule: { startsAtMs: NOW + minutes * MINUTE_MS, everyS: 3600, count: 1 } })

test.each([
  ['now', -2],
  ['from a clock a few minutes ahead', 5],
  ['reviewed slowly', -12],
])('accepts a start %s', async (_, minutes) => {
  const asked = answer({ fetchedAt, expiresAt })
  expect(await checkStart(startsIn(minutes), 'https://api.test/')).toBeUndefined()
  expect(asked).toEqual(['https://api.test/health/attestation'])
})

test.each([
  ['20 days ahead', 20 * 24 * 60],
  ['20 days behind', -20 * 24 * 60],
  ['two hours ahead', 120],
  ['an hour behind', -60],
])('rejects a start %s, because it could never be changed', async (_, minutes) => {
  answer({ fetchedAt, expiresAt })
  expect(await checkStart(startsIn(minutes), 'https://api.test')).toMatch(/clock differs/)
})

test.each<[string, unknown, number]>([
  ['fails', { code: 'attestation_invalid' }, 503],
  ['returns no dates', { mode: 'mock' }, 200],
  ['returns invalid dates', { fetchedAt: 'now', expiresAt: 7 }, 200],
  ['returns no object', [], 200],
])('rejects every start if the service %s', async (_, body, status) => {
  answer(body, status)
  expect(await checkStart(startsIn(-2), 'https://api.test')).toMatch(/couldn’t be read/)
})

test('needs no clock for rules without a schedule', async () => {
  const asked = answer({})
  expect(await checkStart({}, 'https://api.test')).toBeUndefined()
  expect(asked).toEqual([])
})
