import { expect, test } from 'vitest'
import { toHex } from './hex.ts'
import { tags, toTagBytes } from './tags.ts'

const all = Object.values(tags)

test('no two tags are the same', () => {
  expect(new Set(all).size).toBe(all.length)
})

test('tags are ASCII without spaces or controls, under one name and with a version', () => {
  for (const tag of all) expect(tag).toMatch(/^countersign\/[a-z]+(?:-[a-z]+)*\/v[1-9]\d*$/)
})

test('no tag with its end is the beginning of another', () => {
  const bytes = all.map((tag) => toHex(toTagBytes(tag)))
  for (const [index, one] of bytes.entries()) {
    for (const [other, another] of bytes.entries()) if (index !== other) expect(another.startsWith(one)).toBe(false)
  }
})

test('a tag ends with one zero byte', () => {
  expect(toHex(toTagBytes(tags.release))).toBe(`${Buffer.from('countersign/release/v1').toString('hex')}00`)
  for (const tag of all) expect(toTagBytes(tag).indexOf(0)).toBe(tag.length)
})
