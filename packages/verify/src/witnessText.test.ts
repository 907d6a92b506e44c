import { createNoteKey, toVkey } from '@countersign/log'
import { fromHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { parseWitnessText } from './witnessText.ts'

/** RFC 8032 §7.1. */
const hex = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'
const name = 'witness.example/w1'
const vkey = toVkey(createNoteKey({ name, type: 'cosignature-ed25519', publicKey: fromHex(hex) }))

test('a key is read as its witness states it, and in hex of either case', () => {
  for (const text of [vkey, hex, hex.toUpperCase(), `0x${hex}`]) expect(parseWitnessText(text)).toBe(hex)
})

test.each([
  ['nothing', ''],
  ['a name', name],
  ['hex of another length', hex.slice(2)],
  ['the key of a log', toVkey(createNoteKey({ name, type: 'ed25519', publicKey: fromHex(hex) }))],
  [
    'a quantum-safe key, which policies do not name',
    toVkey(createNoteKey({ name, type: 'cosignature-ml-dsa-44', publicKey: new Uint8Array(1_312) })),
  ],
  ['an id of another key', vkey.replace(/\+[0-9a-f]{8}\+/, '+00000000+')],
  ['a key cut short', vkey.slice(0, -4)],
  ['plus signs alone', '++'],
])('%s is none', (_, text) => {
  expect(parseWitnessText(text)).toBeUndefined()
})
