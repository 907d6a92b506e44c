import { expect, test } from 'vitest'
import { withCode } from '../test/withCode.ts'
import { parseJson } from './parseJson.ts'

const encode = (text: string) => new TextEncoder().encode(text)

test('reads bytes and text alike', () => {
  for (const json of ['{"a":["é",1,null]}', ' 7 ', '"text"']) {
    expect(parseJson(json)).toEqual(JSON.parse(json))
    expect(parseJson(encode(json))).toEqual(JSON.parse(json))
  }
})

test.each([
  ['nothing', ''],
  ['white space', ' '],
  ['a page', '<html>'],
  ['JSON that is cut', '{"a":1'],
  ['JSON and more', '{}{}'],
  ['undefined', 'undefined'],
  ['a byte order mark', '\ufeff{}'],
])('%s is refused', (_name, text) => {
  expect(() => parseJson(text)).toThrow(withCode('invalid_json'))
  expect(() => parseJson(encode(text))).toThrow(withCode('invalid_json'))
})

test.each([
  ['a lone byte of another encoding', [0x22, 0xe9, 0x22]],
  ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
  ['half of a surrogate pair', [0x22, 0xed, 0xa0, 0x80, 0x22]],
  ['a character that is cut', [0x22, 0xc3]],
])('%s is refused', (_name, bytes) => {
  expect(() => parseJson(Uint8Array.from(bytes))).toThrow(withCode('invalid_json'))
})

test('does not repeat the input in the error', () => {
  let error: unknown
  try {
    parseJson('{"secret": hunter2}')
  } catch (thrown) {
    error = thrown
  }
  expect(error).not.toHaveProperty('cause')
  expect(JSON.stringify(error) + String(error)).not.toContain('hunter2')
})
