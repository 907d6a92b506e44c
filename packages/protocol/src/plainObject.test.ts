import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { hasExactMembers, isPlainObject, readMembers } from './plainObject.ts'

describe('plain objects', () => {
  test('accepts literals, parsed JSON and objects without a prototype', () => {
    expect([{}, { a: 1 }, JSON.parse('{"a":{}}'), Object.create(null)].every(isPlainObject)).toBe(true)
    expect(isPlainObject(runInNewContext('({ a: 1 })'))).toBe(true)
    for (const code of ['[]', 'new Date()', 'new (class {})()', '({ get a() { return 1 } })']) {
      expect(isPlainObject(runInNewContext(code))).toBe(false)
    }
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
    ['an object that inherits from one without a prototype', Object.create(Object.create(null))],
    ['a getter', Object.defineProperty({}, 'a', { enumerable: true, get: () => 1 })],
    ['a hidden member', Object.defineProperty({}, 'a', { enumerable: false, value: 1 })],
    ['a symbol', { [Symbol('a')]: 1 }],
  ])('%s is not', (_, value) => {
    expect(isPlainObject(value)).toBe(false)
  })

  test('isPlainObject accepts exactly the named members', () => {
    expect(hasExactMembers({ a: 1, b: undefined }, ['a', 'b'])).toBe(true)
    expect(hasExactMembers({ a: 1 }, ['a', 'b'])).toBe(false)
    expect(hasExactMembers({ a: 1, c: 1 }, ['a', 'b'])).toBe(false)
    expect(hasExactMembers({ a: 1, b: 1, c: 1 }, ['a', 'b'])).toBe(false)
    expect(hasExactMembers({ a: 1 }, ['toString'])).toBe(false)
    expect(hasExactMembers([1, 2], ['0', '1'])).toBe(false)
  })
})

describe('readMembers', () => {
  const names = { required: ['a', 'b'], optional: ['c'] } as const
  const read = (value: unknown) => readMembers(value, names, (details) => new RangeError(details))

  test('accepts all required members, with or without the optional ones', () => {
    expect(read({ a: 1, b: undefined })).toEqual({ a: 1, b: undefined })
    expect(read({ a: 1, b: 2, c: 3 })).toEqual({ a: 1, b: 2, c: 3 })
  })

  test.each<[string, unknown, string]>([
    ['null', null, 'not an object'],
    ['a list', [1, 2], 'not an object'],
    ['text', 'ab', 'not an object'],
    ['a member missing', { a: 1, c: 3 }, 'b is missing'],
    ['a member more, which is not repeated', { a: 1, b: 2, secret: 3 }, 'a member is unknown'],
    ['__proto__', JSON.parse('{"a":1,"b":2,"__proto__":{}}'), 'a member is unknown'],
  ])('%s: the error of the caller', (_, value, details) => {
    expect(() => read(value)).toThrow(new RangeError(details))
  })
})
