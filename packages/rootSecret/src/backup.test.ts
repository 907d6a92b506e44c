import { expect, test } from 'vitest'
import { parseBackup } from './backup.ts'

test.each([
  ['nothing', ''],
  ['no JSON', '{'],
  ['null', 'null'],
  ['a list', '[]'],
  ['something endless', `"${'x'.repeat(600_000)}"`],
])('rejects %s', (_, text) => {
  expect(() => parseBackup(text)).toThrow(/^the backup /)
})
