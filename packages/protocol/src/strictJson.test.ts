import { ServiceError } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { parseStrictJson, type StrictJsonLimits } from './strictJson.ts'

function codeOf(bytes: Uint8Array, limits?: StrictJsonLimits): unknown {
  try {
    parseStrictJson(bytes, limits)
    return 'none'
  } catch (error) {
    return error instanceof ServiceError ? error.code : error
  }
}

const utf8 = (text: string) => new TextEncoder().encode(text)
const nested = (depth: number) => utf8('['.repeat(depth) + ']'.repeat(depth))

test.each([
  '{}',
  '[]',
  '"a"',
  '0',
  'null',
  '{"a":1,"b":{"a":2,"b":[{"a":3},{"a":4}]}}',
  // Inside strings, names and brackets are only text.
  '{"a":"\\"a\\":1,{\\"a\\":","b":["a","a"],"c":"}{"}',
  '{"a":"\\\\","b":"\\\\\\"","c":1}',
  '{"a":1,"A":2,"":3,"__proto__":4,"constructor":5}',
  '{"é":1,"e\\u0301":2}',
  ' \t\r\n{ "a" \n : 1 , "b" : "a" } ',
])('reads what JSON.parse reads: %s', (text) => {
  expect(parseStrictJson(utf8(text))).toEqual(JSON.parse(text))
})

test.each([
  '{"a":1,"a":1}',
  '{"a":1,"b":2,"a":3}',
  '{"a":1,"\\u0061":2}',
  '{"\\u00e9":1,"é":2}',
  '{"\\/":1,"/":2}',
  '{"\\"":1,"\\u0022":2}',
  '{"":1,"":2}',
  '{"__proto__":1,"__proto__":2}',
  '{"a":{"b":{"c":1,"c":2}}}',
  '[[{"a":1,"a":2}]]',
  '{"a":[1,{"x":"a"}],"a":0}',
  '{"a"\n\t :1,"a"\r:2}',
  '{"\\ud83d\\ude00":1,"😀":2}',
])('RFC 8259 §4: a name that occurs twice is refused: %s', (text) => {
  expect(codeOf(utf8(text))).toBe('json_duplicate_member')
})

test.each(['', '{', '{"a":1,}', "{'a':1}", '{"a":1} {"a":1}', '\ufeff{}', 'NaN', '{"a":01}', '"\n"'])(
  'rejects %j',
  (text) => {
    expect(codeOf(utf8(text))).toBe('json_malformed')
  },
)

test.each([
  ['a lone continuation byte', [0x22, 0x80, 0x22]],
  ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
  ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ['a cut-off sequence', [0x22, 0xe2, 0x82, 0x22]],
])('not UTF-8: %s', (_name, bytes) => {
  expect(codeOf(Uint8Array.from(bytes))).toBe('json_not_utf8')
})

test('limits the depth to 16, or to the option', () => {
  expect(codeOf(nested(16))).toBe('none')
  expect(codeOf(nested(17))).toBe('json_too_deep')
  expect(codeOf(nested(8000))).toBe('json_too_deep')
  expect(codeOf(nested(3), { maxDepth: 2 })).toBe('json_too_deep')
  expect(codeOf(utf8(`[${'{},'.repeat(100)}{}]`))).toBe('none')
})

test('limits the length to 16 KiB, or to the option', () => {
  const text = (length: number) => utf8(JSON.stringify('a'.repeat(length - 2)))
  expect(codeOf(text(16_384))).toBe('none')
  expect(codeOf(text(16_385))).toBe('json_too_large')
  expect(codeOf(text(20_000), { maxLength: 20_000 })).toBe('none')
})

test('does not repeat the text in the error', () => {
  const error = (() => {
    try {
      return parseStrictJson(utf8('{"email":"someone@example.org"'))
    } catch (thrown) {
      return thrown
    }
  })()
  expect(error).toMatchObject({ code: 'json_malformed', details: undefined })
  expect(error).not.toHaveProperty('cause')
  expect(String(error)).not.toContain('someone')
})
