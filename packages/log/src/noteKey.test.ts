import { fromHex } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { log, witnesses } from '../test/logs.ts'
import { withCode } from '../test/withCode.ts'
import { createNoteKey, type NoteKey, parseVkey, toVkey } from './noteKey.ts'

const vkey = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'

describe('verifier keys (c2sp.org/signed-note)', () => {
  test.each([
    vkey,
    'sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8',
    toVkey(log.key),
    toVkey((witnesses[0] as (typeof witnesses)[number]).key),
  ])('%s is read, and written again', (text) => {
    expect(toVkey(parseVkey(text))).toBe(text)
  })

  test('rejects every part of a key', () => {
    for (let start = 0; start < vkey.length; start++) {
      for (let end = start; end <= vkey.length; end++) {
        if (start === 0 && end === vkey.length) continue
        expect(() => parseVkey(vkey.slice(start, end))).toThrow(withCode('note_key_malformed'))
      }
    }
  })

  test('rejects every changed character', () => {
    for (let index = 0; index < vkey.length; index++) {
      const next = String.fromCharCode(vkey.charCodeAt(index) + 1)
      expect(() => parseVkey(`${vkey.slice(0, index)}${next}${vkey.slice(index + 1)}`)).toThrow(
        withCode('note_key_malformed'),
      )
    }
  })

  test.each([
    ['another length, with its id', 'PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY=='],
    ['an unknown type, with its id', 'PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'],
    ['an id in capitals', vkey.replace('c74f20a3', 'C74F20A3')],
    ['a newline after it', `${vkey}\n`],
    ['a name with a space', `Peter Neumann${vkey.slice(12)}`],
    ['something long', `${vkey}${'A'.repeat(5_000)}`],
    ['no text', undefined as unknown as string],
  ])('refused: %s', (_, text) => {
    expect(() => parseVkey(text)).toThrow(withCode('note_key_malformed'))
  })

  test.each<[string, Partial<NoteKey>]>([
    ['a key of small order', { publicKey: fromHex(`01${'00'.repeat(31)}`) }],
    ['bytes that are not a point', { publicKey: fromHex(`02${'00'.repeat(31)}`) }],
    ['31 bytes', { publicKey: new Uint8Array(31) }],
    ['a type that is not known', { type: 'ecdsa' as NoteKey['type'] }],
    ['an empty name', { name: '' }],
    ['a name with a newline', { name: 'a\nb' }],
  ])('refused: %s', (_, changed) => {
    expect(() => createNoteKey({ ...log.key, ...changed })).toThrow(withCode('note_key_malformed'))
  })

  test('the ID covers name and type: one key for two uses has two IDs', () => {
    const { publicKey } = log.key
    const ids = [
      createNoteKey({ name: 'a', type: 'ed25519', publicKey }).id,
      createNoteKey({ name: 'b', type: 'ed25519', publicKey }).id,
      createNoteKey({ name: 'a', type: 'cosignature-ed25519', publicKey }).id,
    ]
    expect(new Set(ids).size).toBe(3)
  })
})
