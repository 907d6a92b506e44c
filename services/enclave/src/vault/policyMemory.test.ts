import { expect, test } from 'vitest'
import { createPolicyMemory, createPolicyTexts, ENTRY_BYTES } from './policyMemory.ts'

test('deletes the least recently used first, and stays within the limit', () => {
  const memory = createPolicyMemory<number>({ maxBytes: 30 + 3 * ENTRY_BYTES })
  for (const [index, name] of ['a', 'b', 'c'].entries()) memory.set(name, index, 10)
  expect(memory.get('a')).toBe(0)
  memory.set('d', 3, 10)
  expect(['a', 'b', 'c', 'd'].map(memory.get)).toEqual([0, undefined, 2, 3])
  memory.set('e', 4, 25 + 2 * ENTRY_BYTES)
  expect(['a', 'c', 'd', 'e'].map(memory.get)).toEqual([undefined, undefined, undefined, 4])
})

test('the same policy again takes no more memory', () => {
  const memory = createPolicyMemory<number>({ maxBytes: 20 + 2 * ENTRY_BYTES })
  memory.set('a', 0, 10)
  for (let index = 0; index < 10; index += 1) memory.set('b', index, 10)
  expect(['a', 'b'].map(memory.get)).toEqual([0, 9])
})

test('does not store one above the limit', () => {
  const memory = createPolicyMemory<number>({ maxBytes: 5 + ENTRY_BYTES })
  memory.set('a', 0, 6)
  expect(memory.get('a')).toBeUndefined()
})

test('counts bytes, and names texts by their SHA-256', () => {
  const texts = createPolicyTexts({ maxBytes: 4 + ENTRY_BYTES })
  const first = texts.add('éé')
  expect(first).toMatch(/^[0-9a-f]{64}$/)
  expect(texts.get(first)).toBe('éé')
  texts.add('a')
  expect(texts.get(first)).toBeUndefined()
  // SHA-256 of the empty string.
  expect(texts.add('')).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
})

test('the shortest texts count, too, so that any number stays within the limit', () => {
  const texts = createPolicyTexts({ maxBytes: 16 * ENTRY_BYTES })
  const names = Array.from({ length: 256 }, (_, at) => texts.add(String.fromCodePoint(at)))
  expect(names.filter((name) => texts.get(name) !== undefined).length).toBeLessThan(16)
})
