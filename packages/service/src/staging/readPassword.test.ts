import { expect, test } from 'vitest'
import { readMode } from './readMode.ts'
import { readPassword } from './readPassword.ts'

function read(mode: 'development' | 'staging' | 'production', path: string, text?: string) {
  const faults: string[] = []
  const readFile = () => {
    if (text === undefined) throw new Error('no such file')
    return text
  }
  const password = readPassword({ STAGING_PASSWORD_FILE: path }, { mode, readFile }, (fault) => faults.push(fault))
  return { password, faults }
}

test('is the text of the file, without the line end', () => {
  expect(read('staging', '/password', 'sixteen letters!\n')).toEqual({ password: 'sixteen letters!', faults: [] })
})

test.each([
  ['not set', '', undefined, 'required in staging'],
  ['a file that is not there', '/password', undefined, 'cannot be read'],
  ['an empty file', '/password', ' \n', 'is empty'],
  ['fifteen letters', '/password', 'fifteen letters\n', 'shorter than 16 characters'],
])('refused: %s', (_, path, text, expected) => {
  const { password, faults } = read('staging', path, text)
  expect(password).toBeUndefined()
  expect(faults.join()).toContain(expected)
  expect(faults.join()).not.toContain('letters')
})

test.each(['development', 'production'] as const)('in %s it would guard nothing, and says so', (mode) => {
  expect(read(mode, '/password', 'sixteen letters!').faults.join()).toContain('guards nothing here')
  expect(read(mode, '')).toEqual({ password: undefined, faults: [] })
})

test.each([
  ['production', 'production'],
  ['staging', 'staging'],
  ['development', 'development'],
  ['Staging', 'development'],
  ['', 'development'],
  [undefined, 'development'],
])('NODE_ENV=%s is %s', (name, mode) => {
  expect(readMode({ NODE_ENV: name })).toBe(mode)
})
