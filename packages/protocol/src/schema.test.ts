import { describe, expect, test } from 'vitest'
import {
  absent,
  anyCase,
  boolean,
  checked,
  either,
  ethereum,
  hex,
  hexUpTo,
  isOf,
  list,
  literal,
  natural,
  nullable,
  object,
  optional,
  parse,
  positive,
  read,
  type Schema,
  string,
  text,
  time,
  wei,
} from './schema.ts'

describe('leaves', () => {
  test.each([
    ['hex', hex(2), ['00ff'], ['00', '00FF', '0x00ff', '00ff\n', 255, null]],
    ['hexUpTo', hexUpTo(2), ['00', '00ff'], ['', '0', '00ff00', 'FF']],
    ['ethereum', ethereum(1), ['0xab'], ['0xAB', 'ab', '0x', '0xabc']],
    ['anyCase', anyCase(1), ['0xaB'], ['0xag', '0XAB']],
    ['wei', wei, ['0', '10'], ['', '01', '-1', '1.0', 1]],
    ['time', time, ['2026-01-02T03:04:05.678Z'], ['2026-01-02', '9999-99-99T99:99:99.999Z', 'yesterday', 5]],
    ['text', text, ['a'], ['', 1, null]],
    ['boolean', boolean, [true, false], [0, 'true', null]],
    ['natural', natural, [0, 2 ** 53 - 1], [-1, -0, 0.5, 2 ** 53, '1', null]],
    ['positive', positive, [1], [0, -1]],
    ['literal', literal('a'), ['a'], ['b', null]],
    ['nullable', nullable(string()), ['', null], [undefined, 1]],
    ['list', list(natural), [[], [1, 2]], [[1, 'a'], {}, null, 'ab']],
    ['checked twice', checked(positive, (value) => value < 5), [4], [0, 5]],
  ])('%s', (_name, schema, good, bad) => {
    for (const value of good) expect(read(schema as Schema, value)).toEqual(value)
    for (const value of bad) expect(isOf(schema as Schema, value)).toBe(false)
  })
})

const item = object({ id: natural, note: optional(text) })
const message = object({ items: list(item), kind: absent })
const fail = (details: string) => new Error(details)

test('drops or rejects unknown members', () => {
  const body = { items: [{ id: 1, note: 'a', more: 2 }], extra: 1 }
  expect(read(message, body)).toEqual({ items: [{ id: 1, note: 'a' }] })
  expect(() => parse(message, body, fail)).toThrow('items[0] has an unknown member')
  expect(() => parse(message, { items: [], extra: 1 }, fail)).toThrow('it has an unknown member')
  expect(parse(message, { items: [{ id: 1, note: undefined }] }, fail)).toEqual({ items: [{ id: 1 }] })
})

test.each([
  [undefined, 'it is not an object'],
  [[], 'it is not an object'],
  [{}, 'items is missing'],
  [{ items: 1 }, 'items is not a list'],
  [{ items: [{ id: 1 }, { id: '<script>' }] }, 'items[1].id is not valid'],
  [{ items: [], kind: 'a' }, 'kind is not valid'],
])('%j: details name the member and repeat nothing', (value, details) => {
  expect(() => parse(message, value, fail)).toThrow(new Error(details))
})

test('reads the first form that matches', () => {
  const either1 = either(object({ kind: absent, a: natural }), object({ kind: literal('b'), b: natural }))
  expect(parse(either1, { a: 1 }, fail)).toEqual({ a: 1 })
  expect(parse(either1, { kind: 'b', b: 1 }, fail)).toEqual({ kind: 'b', b: 1 })
  expect(() => parse(either1, { kind: 'b', a: 1 }, fail)).toThrow('it is not valid')
})
