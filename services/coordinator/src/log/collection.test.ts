import { openNote, parseNote, signNote } from '@countersign/log'
import { toHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import { createSigner, hash, log, origin, TIME_S, toText } from '../../../../packages/log/test/logs.ts'
import { readCosignature } from './collection.ts'

const text = toText(9)
const seed = hash('w1.example')
const { key } = createSigner('w1.example', 'cosignature-ed25519', seed)
const answerAs = (name: string, of = text) =>
  signNote(of, [{ ...createSigner(name, 'cosignature-ed25519', seed), timestampS: TIME_S }]).slice(of.length + 1)

test.each(['w1.example', 'another.example', origin])(
  'a witness that calls itself %s gets the name that we know it by',
  (name) => {
    const found = readCosignature(answerAs(name), { key, text })
    expect(found).toMatchObject({ witness: toHex(key.publicKey), signature: { name: 'w1.example', keyId: key.id } })
    const signatures = [...parseNote(signNote(text, [log])).signatures, ...(found ? [found.signature] : [])]
    expect(openNote({ text, signatures }, [log.key, key]).verified).toHaveLength(2)
  },
)

test.each([
  ['of another text', answerAs('w1.example', toText(8))],
  ['of no known key', ''],
  ['with an empty line in it', `\n${answerAs('w1.example')}`],
])('rejects a response %s', (_name, lines) => {
  expect(readCosignature(lines, { key, text })).toBeUndefined()
})
