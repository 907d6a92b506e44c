import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { hashTypedData } from 'viem'
import { expect, test } from 'vitest'
import openingSchema from '../spec/opening-v1.schema.json' with { type: 'json' }
import { createLimitVectors, hashOrReject, isSettings, toLimitVectorFile } from '../vectors/createLimitVectors.ts'
import v2 from '../vectors/protocol-v2.vectors.json' with { type: 'json' }
import { parseOpening, withholdHalf } from './index.ts'

const file = readFileSync(new URL('../vectors/limits-v1.vectors.json', import.meta.url), 'utf8')
const { typedData, settings } = JSON.parse(file) as ReturnType<typeof createLimitVectors>

test('the file has exactly the script’s output', () => {
  expect(file).toBe(toLimitVectorFile(createLimitVectors()))
})

test('viem computes the same digests of the typed data that is accepted', () => {
  const accepted = typedData.flatMap((one) => ('digest' in one ? [one] : []))
  expect(accepted.length).toBeGreaterThan(10)
  for (const { name, typedData, digest } of accepted) {
    expect([name, hashTypedData(typedData as never)]).toEqual([name, digest])
  }
})

test('the vectors in the file give the stated results', () => {
  for (const { name: _, typedData: value, ...result } of typedData) expect(hashOrReject(value)).toEqual(result)
  for (const { settings: value, isAccepted } of settings) expect(isSettings(value)).toBe(isAccepted)
})

test('accepts an origin exactly if protocol.md allows it', () => {
  for (const { name, settings: value, isAccepted } of settings) {
    const [origin = '', second] = (value as { log: { origins: string[] } }).log.origins
    if (!name.startsWith('an origin with') || second !== undefined) continue
    const isShort = Buffer.from(origin).length >= 1 && Buffer.from(origin).length <= 255
    expect([name, isAccepted]).toEqual([name, isShort && !/[\p{White_Space}\ufeff+\p{Cc}]/u.test(origin)])
  }
})

const validate = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false }).compile(openingSchema)
const [first] = v2.openings
const opening = parseOpening(new TextEncoder().encode(JSON.stringify(first?.opening)))
const content = opening.content as object
const signature = opening.signature as object

test('the schema of openings accepts what parsers accept', () => {
  const both = v2.openings.map(({ opening }) => opening)
  for (const one of [...both, withholdHalf(opening, 'content'), withholdHalf(opening, 'signature')]) {
    expect(validate(one), JSON.stringify(validate.errors)).toBe(true)
    expect(() => parseOpening(new TextEncoder().encode(JSON.stringify(one)))).not.toThrow()
  }
})

test.each<[string, unknown]>([
  ['both halves withheld', { content: '00'.repeat(32), signature: '00'.repeat(32) }],
  ['one half', { content }],
  ['a member more', { content, signature, note: '' }],
  ['a commitment in upper case', { content: 'AA'.repeat(32), signature }],
  ['a digest in upper case', { content: { ...content, digest: `0x${'AA'.repeat(32)}` }, signature }],
  ['a salt of 31 bytes', { content: { ...content, salt: '00'.repeat(31) }, signature }],
  ['an unknown kind', { content: { ...content, kind: 'transaction' }, signature }],
  ['content of another kind', { content: { ...content, kind: 'typed-data' }, signature }],
  ['a signature without 0x', { content, signature: { ...signature, signature: '00'.repeat(65) } }],
  ['approvals that are not a list', { content: { ...content, approvals: {} }, signature }],
])('the schema of openings and the parser reject %s', (_, value) => {
  expect(validate(value)).toBe(false)
  expect(() => parseOpening(new TextEncoder().encode(JSON.stringify(value)))).toThrow('malformed opening')
})
