import { expect, test } from 'vitest'
import type { Finding } from './findings.ts'
import { findCompleteTo } from './report.ts'

test('completeTo is the first open nonce, even with very many findings', () => {
  const hidden: Finding[] = Array.from({ length: 150_000 }, (_, index) => ({ kind: 'hidden', index }))
  expect(findCompleteTo(hidden, 9)).toBe(9)
  expect(findCompleteTo([...hidden, { kind: 'no-receipt', nonces: [7, 7] }], 9)).toBe(7)
  expect(findCompleteTo([{ kind: 'authorization', nonces: [3, 3] }], 9)).toBe(9)
})
