import { expect, test } from 'vitest'
import { toPrintable } from './toPrintable.ts'

test('characters that mislead a reader are shown as such', () => {
  expect(toPrintable('a\u202eb\u200bc\nd')).toBe('a\ufffdb\ufffdc\ufffdd')
})
