import { describe, expect, test } from 'vitest'
import { hasExactMembers, isPlainObject } from './plainObject.ts'

describe('plain objects', () => {
  test('literals, parsed JSON and objects without a prototype are plain', () => {
    expect([{}, { a: 1 }, JSON.parse('{"a":{}}'), Object.create(null)].every(isPlainObject)).toBe(true)
  })

  test.each([
    ['null', null],
    ['undefined', undefined],
    ['a string', 'a'],
    ['an array', []],
    ['a date', new Date(0)],
    ['a map', new Map()],
    ['an instance', new (class Named {})()],
    ['an object that inherits', Object.create({ a: 1 })],
    ['a getter', Object.defineProperty({}, 'a', { enumerable: true, get: () => 1 })],
    ['a hidden member', Object.defineProperty({}, 'a', { enumerable: false, value: 1 })],
    ['a symbol', { [Symbol('a')]: 1 }],
  ])('%s is not', (_, value) => {
    expect(isPlainObject(value)).toBe(false)
  })

  test('members are counted and named', () => {
    expect(hasExactMembers({ a: 1, b: undefined }, ['a', 'b'])).toBe(true)
    expect(hasExactMembers({ a: 1 }, ['a', 'b'])).toBe(false)
    expect(hasExactMembers({ a: 1, c: 1 }, ['a', 'b'])).toBe(false)
    expect(hasExactMembers({ a: 1, b: 1, c: 1 }, ['a', 'b'])).toBe(false)
    expect(hasExactMembers({ a: 1 }, ['toString'])).toBe(false)
    expect(hasExactMembers([1, 2], ['0', '1'])).toBe(false)
  })
})
