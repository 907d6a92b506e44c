import { expect, test } from 'vitest'
import { rememberGood } from './rememberGood.ts'

test('caches valid texts until there are too many, and always checks invalid ones again', () => {
  const judged: string[] = []
  const isGood = rememberGood((text) => {
    judged.push(text)
    return text !== 'bad'
  }, 2)
  const ask = (...texts: string[]) => [texts.map(isGood), judged.splice(0)]
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
