import { toCanonicalJson } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { toFlatJson } from './toFlatJson.ts'

test.each([
  {},
  { a: 1 },
  { a: 'x', b: 2, c: null },
  { c: 'x', b: 2, a: null },
  { a: 1, c: 2, b: 3 },
  { Z: 1, a: 2, aa: 3, aB: 4, ab: 5 },
])('%j has one canonical form for any order of members', (value) => {
  expect(toFlatJson(value)).toBe(new TextDecoder().decode(toCanonicalJson(value)))
})
