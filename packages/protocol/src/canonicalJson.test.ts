import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { parseCanonicalJson, toCanonicalJson } from './canonicalJson.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const parse = (text: string) => parseCanonicalJson(encode(text), { maxBytes: 1024 })
const nest = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`

describe('canonical JSON (RFC 8785)', () => {
  test('§3.2.2 and appendix B: writes numbers and strings in canonical form', () => {
    const numbers = [333333333.3333333, 1e30, 4.5, 2e-3, 0.000000000000000000000000001, -0, 5e-324, 9007199254740992]
    expect(decode(toCanonicalJson(numbers))).toBe('[333333333.3333333,1e+30,4.5,0.002,1e-27,0,5e-324,9007199254740992]')
    expect(decode(toCanonicalJson('\u20ac$\u000f\nA\'B"\\\\"/'))).toBe('"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"')
  })

  test('§3.2.3: sorts members by UTF-16 code units', () => {
    const value = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\u{1f600}': 5, '\u0080': 6, '\u00f6': 7 }
    expect(decode(toCanonicalJson(value))).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}')
  })

  test('any JSON value survives a round trip', () => {
    const jsonValue = fc.jsonValue({ maxDepth: 4 })
    fc.assert(
      fc.property(jsonValue, (value) => {
        fc.pre(!JSON.stringify(value).includes('__proto__'))
        const bytes = toCanonicalJson(value)
        expect(parseCanonicalJson(bytes, { maxBytes: bytes.length })).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  const cycle: unknown[] = []
  cycle.push({ cycle })
  // With only a depth limit, this one would take 2^64 steps.
  const branching: unknown[] = []
  branching.push(branching, branching)
  test.each([
    ['undefined', undefined],
    ['an undefined member', { a: undefined }],
    ['an undefined item', [undefined]],
    ['a hole', new Array(1)],
    ['a hole made up for by another member', Object.assign(new Array(1), { a: 1 })],
    ['NaN', Number.NaN],
    ['Infinity', [Number.POSITIVE_INFINITY]],
    ['-Infinity', { a: Number.NEGATIVE_INFINITY }],
    ['a bigint', 1n],
    ['a function', { toJSON: () => 1 }],
    ['a symbol', [Symbol('a')]],
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', ['\udc00a']],
    ['a lone surrogate in a name', { '\ud800': 1 }],
    ['surrogates in the wrong order', '\udc00\ud800'],
    ['a date', new Date(0)],
    ['a boxed number', Object(1)],
    ['bytes', new Uint8Array(1)],
    ['a map', new Map()],
    ['an array of another class', new (class extends Array {})()],
    ['an array with a member', Object.assign([1], { a: 1 })],
    ['a getter', Object.defineProperty({}, 'a', { enumerable: true, get: () => 1 })],
    ['an own __proto__', JSON.parse('{"a":{"__proto__":1}}')],
    ['a cycle', cycle],
    ['a cycle that branches', branching],
    ['65 levels', JSON.parse(nest(65))],
  ])('refuses %s', (_, value) => {
    expect(() => toCanonicalJson(value)).toThrow(withCode('not_canonicalizable'))
  })

  test('accepts the nearest valid values', () => {
    const shared = { a: 1 }
    expect(decode(toCanonicalJson([shared, shared]))).toBe('[{"a":1},{"a":1}]')
    expect(decode(toCanonicalJson('\ud83d\ude00'))).toBe('"😀"')
    expect(decode(toCanonicalJson(JSON.parse(nest(64))))).toBe(nest(64))
  })
})

describe('parsing canonical JSON', () => {
  test('accepts the canonical form', () => {
    expect(parse('{"a":[1,true,null,"x"],"b":{}}')).toEqual({ a: [1, true, null, 'x'], b: {} })
  })

  test.each([
    ['nothing', ''],
    ['something else', '{a:1}'],
    ['white space inside', '{"a": 1}'],
    ['white space before', ' {"a":1}'],
    ['a line end', '{"a":1}\n'],
    ['a byte order mark', '\ufeff{"a":1}'],
    ['another order', '{"b":1,"a":1}'],
    ['a member twice', '{"a":1,"a":1}'],
    ['a member twice with other values', '{"a":2,"a":1}'],
    ['a member twice, once escaped', '{"a":1,"\\u0061":1}'],
    ['1.0', '[1.0]'],
    ['1e0', '[1e0]'],
    ['-0', '[-0]'],
    ['2^53 + 1', '[9007199254740993]'],
    ['1e400', '[1e400]'],
    ['an escape that is not needed', '["\\u0061"]'],
    ['an upper-case escape', '["\\u000F"]'],
    ['an escaped solidus', '["\\/"]'],
    ['an escaped lone surrogate', '["\\ud800"]'],
    ['an escaped pair', '["\\ud83d\\ude00"]'],
    ['__proto__', '{"__proto__":{"isAdmin":true}}'],
    ['65 levels', nest(65)],
  ])('refuses %s', (_, text) => {
    expect(() => parse(text)).toThrow(withCode('json_not_canonical'))
  })

  test('rejects bytes that are not UTF-8', () => {
    for (const bytes of [
      [0x22, 0xff, 0x22],
      [0x22, 0xc0, 0x80, 0x22],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
      [0x22, 0xe2, 0x82],
    ]) {
      expect(() => parseCanonicalJson(Uint8Array.from(bytes), { maxBytes: 100 })).toThrow(
        withCode('json_not_canonical'),
      )
    }
  })

  test('rejects one byte too many before parsing', () => {
    expect(parseCanonicalJson(encode('"abc"'), { maxBytes: 5 })).toBe('abc')
    expect(() => parseCanonicalJson(encode('"abc"'), { maxBytes: 4 })).toThrow(withCode('json_not_canonical'))
    expect(() => parseCanonicalJson(encode('1'), { maxBytes: Number.NaN })).toThrow(withCode('json_not_canonical'))
  })

  test('survives nesting that would exhaust a stack', () => {
    const deep = encode(nest(100_000))
    expect(() => parseCanonicalJson(deep, { maxBytes: deep.length })).toThrow(withCode('json_not_canonical'))
  })
})
