import { expect, test } from 'vitest'
import { parseMinimumTcbTexts, toMinimumTcbTexts } from './minimumTcbText.ts'

const minimumTcb = { Milan: { bl: 4, snp: 24, ucode: 219 }, Turin: { fmc: 1, tee: 0 } }

test('patch levels are read as they are written', () => {
  const texts = toMinimumTcbTexts(minimumTcb)
  expect(texts).toEqual(['Milan:bl=4,snp=24,ucode=219', 'Turin:fmc=1,tee=0'])
  expect(parseMinimumTcbTexts(texts)).toEqual(minimumTcb)
})

test('a product without levels is not written: it would ask for nothing', () => {
  expect(toMinimumTcbTexts({ Milan: {}, Genoa: { bl: 1 } })).toEqual(['Genoa:bl=1'])
})

test.each([
  ['no levels', ['Milan']],
  ['empty levels', ['Milan:']],
  ['another product', ['Naples:bl=1']],
  ['lower case', ['milan:bl=1']],
  ['another part', ['Milan:microcode=1']],
  ['a name of every object', ['Milan:toString=1']],
  ['a product of every object', ['constructor:bl=1']],
  ['a level of more than a byte', ['Milan:bl=256']],
  ['a negative level', ['Milan:bl=-1']],
  ['a level in hex', ['Milan:bl=0x4']],
  ['a leading zero', ['Milan:bl=04']],
  ['no level', ['Milan:bl=']],
  ['a part twice', ['Milan:bl=1,bl=2']],
  ['a product twice', ['Milan:bl=1', 'Milan:snp=2']],
  ['a space', ['Milan:bl=1, snp=2']],
  ['two colons', ['Milan:bl=1:snp=2']],
])('is not read: %s', (_, texts) => {
  expect(parseMinimumTcbTexts(texts)).toBeUndefined()
})
