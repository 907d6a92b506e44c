import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sessionTags } from '../vectors/sessionTags.ts'
import { vaultTags } from '../vectors/vaultTags.ts'
import { version1Tags } from '../vectors/version1Tags.ts'
import { version2Tags } from '../vectors/version2Tags.ts'
import { toHex } from './hex.ts'
import * as preimages from './preimages.ts'
import { tags, toPreimage, toTagBytes } from './tags.ts'

/** The two sides of a transfer share a tag and differ in the next byte. */
const { keyTransferReply, ...others } = tags
const all = Object.values(others)

test('the sides of a transfer differ after their tag', () => {
  expect(keyTransferReply).toBe(tags.keyTransfer)
  const zeros = new Uint8Array(32)
  const asked = { challenge: zeros, nonce: zeros, publicKey: zeros, configHash: zeros }
  const head = toTagBytes(tags.keyTransfer).length
  expect(toPreimage(preimages.keyTransfer, asked)[head]).toBe(1)
  expect(toPreimage(preimages.keyTransferReply, { ...asked, enc: zeros, ciphertextHash: zeros })[head]).toBe(2)
})

test('no two tags are the same', () => {
  expect(new Set(all).size).toBe(all.length)
})

test('every tag is in the vectors of one file', () => {
  expect([...version1Tags, ...version2Tags, ...vaultTags, ...sessionTags].toSorted()).toEqual(all.toSorted())
})

test('tags are ASCII without spaces or controls, under one name and with a version', () => {
  for (const tag of all) expect(tag).toMatch(/^countersign\/[a-z]+(?:-[a-z]+)*\/v[1-9]\d*b?$/)
})

test('no tag with its zero byte is a prefix of another', () => {
  const bytes = all.map((tag) => toHex(toTagBytes(tag)))
  for (const [index, one] of bytes.entries()) {
    for (const [other, another] of bytes.entries()) if (index !== other) expect(another.startsWith(one)).toBe(false)
  }
})

test('a tag ends with one zero byte', () => {
  expect(toHex(toTagBytes(tags.release))).toBe(`${Buffer.from('countersign/release/v1').toString('hex')}00`)
  for (const tag of all) expect(toTagBytes(tag).indexOf(0)).toBe(tag.length)
})

test('the specification lists every tag', () => {
  const text = readFileSync(new URL('../spec/protocol.md', import.meta.url), 'utf8')
  const listed = new Set([...text.matchAll(/\bT\(([^)]+)\)/g)].map(([, name]) => `countersign/${name}`))
  const types: readonly string[] = [tags.signing, tags.signingV2]
  for (const type of types) expect(text).toContain(type)
  const expected = new Set(all.filter((tag) => !types.includes(tag)))
  expect([...listed].filter((tag) => tag !== 'countersign/x').toSorted()).toEqual([...expected].toSorted())
})
