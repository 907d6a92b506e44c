import { expect, test } from 'vitest'
import { trimWhiteSpace } from './trimWhiteSpace.ts'

test.each([
  ['{}', '{}'],
  ['{}\n', '{}'],
  ['\r\n\t {} { }\t\r\n', '{} { }'],
  ['\u{feff}{}\v', '\u{feff}{}\v'],
  [' \n', ''],
  ['', ''],
])('%j becomes %j', (text, trimmed) => {
  expect(new TextDecoder('utf-8', { ignoreBOM: true }).decode(trimWhiteSpace(new TextEncoder().encode(text)))).toBe(
    trimmed,
  )
})
