import { expect, test } from 'vitest'
import { cacheValid } from './cacheValid.ts'

test('caches valid texts until there are too many, and always checks invalid ones again', () => {
  const checked: string[] = []
  const isGood = cacheValid((text) => {
    checked.push(text)
    return text !== 'bad'
  }, 2)
  const ask = (...texts: string[]) => [texts.map(isGood), checked.splice(0)]
  expect(ask('a', 'a', 'b', 'a', 'b')).toEqual([
    [true, true, true, true, true],
    ['a', 'b'],
  ])
  expect(ask('bad', 'bad')).toEqual([
    [false, false],
    ['bad', 'bad'],
  ])
  expect(ask('c', 'c', 'a')).toEqual([
    [true, true, true],
    ['c', 'a'],
  ])
})
