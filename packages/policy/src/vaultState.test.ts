import { expect, test } from 'vitest'
import vectors from '../../log/vectors/log-v1.vectors.json' with { type: 'json' }
import { parseStateHex, toStateHex } from './vaultState.ts'

const { states } = vectors.table

test('states have the bytes of the vectors (log-v1 §5)', () => {
  expect(states.length).toBeGreaterThan(0)
  for (const { bytes, counters, ...members } of states) {
    const state = { ...members, counters: counters.map(({ window, spent }) => ({ window, spent: BigInt(spent) })) }
    expect(toStateHex(state)).toBe(bytes)
    expect(parseStateHex(bytes)).toEqual(state)
  }
})

const [{ bytes } = { bytes: '' }] = states
test.each([
  ['a byte less', bytes.slice(2)],
  ['a byte more', `${bytes}00`],
  ['capitals', bytes.toUpperCase()],
  ['nine budgets', bytes + bytes.slice(88).repeat(8)],
  ['a sequence number above 2^53', `${bytes.slice(0, 64)}0020000000000001${bytes.slice(80)}`],
])('a text with %s is no state', (_, text) => {
  expect(parseStateHex(text)).toBeUndefined()
})
