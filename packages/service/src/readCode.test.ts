import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { readCauseCode, readCode } from './readCode.ts'

const coded = Object.assign(new Error('no such file'), { code: 'ENOENT' })

test('readCode returns the code of an error, if it is a string', async () => {
  expect(readCode(coded)).toBe('ENOENT')
  expect(readCode(await readFile(import.meta.dirname).catch((error: unknown) => error))).toBe('EISDIR')
  // A DOMException has a number.
  const numbered = new DOMException('too late', 'TimeoutError')
  for (const error of [new Error('plain'), numbered, { code: 'ENOENT' }, 'ENOENT', null, undefined]) {
    expect(readCode(error)).toBeUndefined()
  }
})

test('readCauseCode returns only the code of the cause', () => {
  expect(readCauseCode(new TypeError('fetch failed', { cause: coded }))).toBe('ENOENT')
  for (const error of [coded, new Error('plain', { cause: 'ENOENT' }), { cause: coded }, null, undefined]) {
    expect(readCauseCode(error)).toBeUndefined()
  }
})
