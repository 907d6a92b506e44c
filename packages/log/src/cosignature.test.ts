import { createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createSigner, hash, log, origin, TIME_S, toCosigned, toText } from '../test/logs.ts'
import { withCode } from '../test/withCode.ts'
import { formatCheckpoint } from './checkpoint.ts'
import { type NoteSignature, parseNote } from './note.ts'
import { parseVkey } from './noteKey.ts'
import { openNote, signNote } from './openNote.ts'
import { toNoteSignature, toSignedMessage } from './signedMessage.ts'

const ed25519 = createSigner('w1.example', 'cosignature-ed25519')
const mlDsa = createSigner('w1.example', 'cosignature-ml-dsa-44')
const text = toText(7)
const decode = (bytes: Uint8Array) => new TextDecoder('latin1').decode(bytes)

describe('cosignatures (c2sp.org/tlog-cosignature)', () => {
  test('Ed25519: signs the message of the specification, and node:crypto verifies the signature in the note', () => {
    const message = toSignedMessage(ed25519.key, text, { timestampS: 1_679_315_147 })
    expect(new TextDecoder().decode(message)).toBe(`cosignature/v1\ntime 1679315147\n${text}`)
    const { bytes } = parseNote(toCosigned(text, [ed25519], 1_679_315_147)).signatures.at(1) as NoteSignature
    expect(Buffer.from(bytes.subarray(0, 8)).readBigUInt64BE()).toBe(1_679_315_147n)
    const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), ed25519.key.publicKey])
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    expect(verify(null, message, key, bytes.subarray(8))).toBe(true)
  })

  test('ML-DSA-44: label, cosigner, time, origin, start 0, size and root, in this order', () => {
    const root = hash('root')
    const body = formatCheckpoint({ origin, size: 20_852_163, root, extensions: [] })
    const message = toSignedMessage(mlDsa.key, body, { timestampS: 1_679_315_147 })
    const u64 = (value: bigint) => {
      const bytes = Buffer.alloc(8)
      bytes.writeBigUInt64BE(value)
      return decode(bytes)
    }
    expect(decode(message)).toBe(
      `subtree/v1\n\0\x0aw1.example${u64(1_679_315_147n)}\x15${origin}${u64(0n)}${u64(20_852_163n)}${decode(root)}`,
    )
  })

  test('ML-DSA-44: independent code verifies a signature by node:crypto', () => {
    const note = toCosigned(text, [mlDsa])
    expect(openNote(note, [mlDsa.key]).verified[0]?.timestampS).toBe(TIME_S)
    expect(() => openNote(note.replace('\n7\n', '\n8\n'), [mlDsa.key])).toThrow(withCode('note_signature_invalid'))
  })

  test('ML-DSA-44: verifies torchwood’s vector of a log that signs with it', () => {
    const file = readFileSync(new URL('../vectors/torchwood.vectors.json', import.meta.url), 'utf8')
    const { vkey, note } = JSON.parse(file) as { vkey: string; note: string }
    const key = parseVkey(vkey)
    expect(openNote(note, [key]).verified[0]?.timestampS).toBe(0)
    expect(() => openNote(note.replace('\n1\n', '\n2\n'), [key])).toThrow(withCode('note_signature_invalid'))
    expect(() => openNote(note.replace('\n1\n', '\n1\n').replace('38=', '38=\nmore'), [key])).toThrow(
      withCode('note_signature_invalid'),
    )
  })

  test.each([ed25519, mlDsa])('$key.type: rejects another time, size, origin or name', (signer) => {
    const own = parseNote(toCosigned(text, [signer])).signatures.at(1) as NoteSignature
    const raw = own.bytes.subarray(8)
    const open = (body: string, timestampS = TIME_S, key = signer.key) =>
      openNote({ text: body, signatures: [toNoteSignature(key, raw, { timestampS })] }, [key])
    expect(open(text).verified).toHaveLength(1)
    const invalid = withCode('note_signature_invalid')
    expect(() => open(text, TIME_S + 1)).toThrow(invalid)
    expect(() => open(text.replace('\n7\n', '\n6\n'))).toThrow(invalid)
    expect(() => open(text.replace(origin, `${origin}x`))).toThrow(invalid)
    expect(() => open(`${text}an extension\n`)).toThrow(invalid)
  })

  test('ML-DSA-44 covers the name of the cosigner, Ed25519 does not', () => {
    for (const [type, isCovered] of [
      ['cosignature-ed25519', false],
      ['cosignature-ml-dsa-44', true],
    ] as const) {
      const [one, other] = [createSigner('a', type, hash('k')), createSigner('b', type, hash('k'))]
      const signature = one.sign(toSignedMessage(one.key, text, { timestampS: TIME_S }))
      const note = { text, signatures: [toNoteSignature(other.key, signature, { timestampS: TIME_S })] }
      if (isCovered) expect(() => openNote(note, [other.key])).toThrow(withCode('note_signature_invalid'))
      else expect(openNote(note, [other.key]).verified).toHaveLength(1)
    }
  })

  test('rejects a text that is not a checkpoint, and extension lines with ML-DSA-44, which would not cover them', () => {
    const time = { timestampS: TIME_S }
    expect(() => toSignedMessage(ed25519.key, 'a text\n', time)).toThrow(withCode('checkpoint_malformed'))
    expect(() => toSignedMessage(mlDsa.key, `${text}more\n`, time)).toThrow(withCode('checkpoint_malformed'))
    expect(toSignedMessage(ed25519.key, `${text}more\n`, time).length).toBeGreaterThan(0)
  })

  test.each([undefined, 0, -1, 1.5, 2 ** 53])('rejects the Ed25519 cosignature time %s', (timestampS) => {
    const time = timestampS === undefined ? {} : { timestampS }
    expect(() => toSignedMessage(ed25519.key, text, time)).toThrow(withCode('note_malformed'))
    expect(() => signNote(text, [{ ...ed25519, ...time }])).toThrow(withCode('note_malformed'))
  })

  test.each([
    ['no bytes after the key id but one', new Uint8Array(1)],
    ['only a time', new Uint8Array(8)],
    ['a time beyond 2^53', Uint8Array.from([0xff, ...new Uint8Array(71)])],
    ['the bytes of a signature of the log', new Uint8Array(64)],
    ['one byte more', new Uint8Array(73)],
  ])('invalid, and no other error: %s', (_, bytes) => {
    for (const { key } of [ed25519, mlDsa, log]) {
      const note = { text, signatures: [{ name: key.name, keyId: key.id, bytes }] }
      expect(() => openNote(note, [key])).toThrow(withCode('note_signature_invalid'))
    }
  })
})
