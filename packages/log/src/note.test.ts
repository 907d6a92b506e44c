import { describe, expect, test } from 'vitest'
import { createSigner, log, toCosigned, toText, witnesses } from '../test/logs.ts'
import { withCode } from '../test/withCode.ts'
import { formatNote, MAX_NOTE_BYTES, MAX_NOTE_SIGNATURES, parseNote } from './note.ts'
import { parseVkey } from './noteKey.ts'
import { openNote, signNote } from './openNote.ts'

// golang.org/x/mod/sumdb/note, note_test.go.
const text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
const peter = parseVkey('PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW')
const enoch = parseVkey('EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop')
const peterLine =
  '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n'
const enochLine =
  '— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n'
const note = `${text}\n${peterLine}${enochLine}`

// c2sp.org/signed-note and c2sp.org/tlog-cosignature.
const quasimodo = `Ognuno sta solo sul cuor della terra
trafitto da un raggio di sole:

ed è subito sera.

— quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=
`
const sofa = `example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
`

describe('notes (c2sp.org/signed-note)', () => {
  test.each([
    ['of the specification', quasimodo, ['36 7b a0 4b']],
    ['of tlog-cosignature', sofa, ['03 3d e0 ae', '8d 66 cf 3f']],
    ["of Go's tests", note, ['c7 4f 20 a3', 'af 0c fe 78']],
  ])('the example %s is read, and written again to the byte', (_, example, ids) => {
    const parsed = parseNote(example)
    expect(parsed.signatures.map(({ keyId }) => keyId)).toEqual(ids.map((id) => id.replaceAll(' ', '')))
    expect(formatNote(parsed)).toBe(example)
  })

  test('the text ends at the last empty line', () => {
    expect(parseNote(quasimodo).text).toBe(quasimodo.slice(0, quasimodo.indexOf('\n— quasi')))
    expect(parseNote(`\n\n${peterLine}`).text).toBe('\n')
  })

  test.each([
    ['no signature', text],
    ['an empty line and no signature', `${text}\n`],
    ['no newline at the end', note.slice(0, -1)],
    ['a control character', `\u0001${note}`],
    ['a tab', note.replace('cryptography', '\t')],
    ['a carriage return', note.replaceAll('\n', '\r\n')],
    ['a lone surrogate', `\ud800${note}`],
    ['a line that is not a signature', `${note}Unexpected line.\n`],
    ['a hyphen for the dash', note.replaceAll('—', '-')],
    ['a name with a space', note.replace('PeterNeumann', 'Peter Neumann')],
    ['a name with a space of another kind', note.replace('PeterNeumann', 'Peter\u00a0Neumann')],
    ['a name with a plus', note.replace('PeterNeumann', 'Peter+Neumann')],
    ['no name', note.replace('PeterNeumann', '')],
    ['two spaces', note.replace('PeterNeumann', 'PeterNeumann ')],
    ['something after the signature', note.replace('AM=\n', 'AM= x\n')],
    ['base64 without padding', note.replace('AM=\n', 'AM\n')],
    ['base64 in a second spelling', note.replace('AM=\n', 'AN=\n')],
    ['base64 of the other alphabet', note.replace('x08go/', 'x08go_')],
    ['a signature of no bytes', `${text}\n— PeterNeumann x08gow==\n`],
    [`more than ${MAX_NOTE_SIGNATURES} signatures`, `${text}\n${peterLine.repeat(MAX_NOTE_SIGNATURES + 1)}`],
    ['more bytes than are read', `${'a'.repeat(MAX_NOTE_BYTES)}\n${note}`],
    ['more bytes than are read, in fewer characters', `${'€'.repeat(MAX_NOTE_BYTES / 2)}\n\n${peterLine}`],
  ])('refused: %s', (_, changed) => {
    expect(changed).not.toBe(note)
    expect(() => parseNote(changed)).toThrow(withCode('note_malformed'))
  })

  test('accepts exactly the maximum number of signatures, which is at least 16', () => {
    expect(parseNote(`${text}\n${peterLine.repeat(MAX_NOTE_SIGNATURES)}`).signatures).toHaveLength(65)
  })

  test('rejects writing a note that could not be read again', () => {
    const { signatures } = parseNote(note)
    expect(() => formatNote({ text: 'no newline', signatures })).toThrow(withCode('note_malformed'))
    expect(() => formatNote({ text, signatures: [] })).toThrow(withCode('note_malformed'))
  })
})

describe('opening a note', () => {
  test('opens Go’s note with either key, and names the key', () => {
    expect(openNote(note, [peter]).verified.map(({ key }) => key.name)).toEqual(['PeterNeumann'])
    expect(openNote(note, [enoch, peter]).verified.map(({ key }) => key.name)).toEqual(['PeterNeumann', 'EnochRoot'])
    expect(openNote(note, [peter]).text).toBe(text)
  })

  test('opens a checkpoint of Go’s checksum database, the source of C2SP’s examples, with its key', () => {
    const real = (sofa.split('— witness')[0] as string)
      .replace('example.com/behind-the-sofa\n2', 'go.sum database tree\n2')
      .replace('example.com/behind-the-sofa', 'sum.golang.org')
    const key = parseVkey('sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8')
    expect(openNote(real, [key]).text).toContain('20852163')
    expect(() => openNote(real.replace('20852163', '20852164'), [key])).toThrow(withCode('note_signature_invalid'))
  })

  test('rejects a note without a signature by a known key', () => {
    expect(() => openNote(note, [])).toThrow(withCode('note_unsigned'))
    expect(() => openNote(note, [log.key])).toThrow(withCode('note_unsigned'))
  })

  test('ignores a key under another name, and another key under the name', () => {
    expect(() => openNote(note.replaceAll('PeterNeumann', 'PeterNeuman'), [peter])).toThrow(withCode('note_unsigned'))
    expect(() => openNote(`${text}\n${peterLine.replace('x08g', 'x08h')}`, [peter])).toThrow(withCode('note_unsigned'))
  })

  test('rejects a note with an invalid line by a known key, even if other lines are valid', () => {
    const broken = peterLine.replace('9UG', '9UH')
    expect(() => openNote(`${text}\n${enochLine}${broken}`, [peter, enoch])).toThrow(withCode('note_signature_invalid'))
    expect(() => openNote(`${text}\n${peterLine}${broken}`, [peter])).toThrow(withCode('note_signature_invalid'))
    const short = peterLine.replace('x08go/ZJkuBS', 'x08go/ZJ')
    expect(() => openNote(`${text}\n${short}`, [peter])).toThrow(withCode('note_signature_invalid'))
  })

  test('rejects every changed byte of the text', () => {
    for (let index = 0; index < text.length; index++) {
      const changed = `${text.slice(0, index)}#${text.slice(index + 1)}`
      expect(() => openNote(`${changed}\n${peterLine}`, [peter])).toThrow(expect.objectContaining({ name: 'LogError' }))
    }
  })

  test('rejects two keys with one name and ID', () => {
    expect(() => openNote(note, [peter, peter])).toThrow(withCode('note_key_malformed'))
  })

  test('signing gives Go’s bytes', () => {
    // The secret of note_test.go, without its first byte.
    const seed = Buffer.from('gQoUAtUUbI2E8kQzMPVAgOv5juF9nHT2JS/F1ccoMXM=', 'base64')
    expect(signNote(text, [createSigner('PeterNeumann', 'ed25519', seed)])).toBe(`${text}\n${peterLine}`)
  })

  test('opens the note of a log’s checkpoint with its witnesses, with all keys', () => {
    const cosigned = toCosigned(toText(5), witnesses)
    const { verified } = openNote(
      cosigned,
      [log, ...witnesses].map(({ key }) => key),
    )
    expect(verified.map(({ timestampS }) => timestampS)).toEqual([
      undefined,
      1_800_000_000,
      1_800_000_000,
      1_800_000_000,
    ])
  })
})
