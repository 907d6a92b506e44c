import { fromHex } from '@countersign/protocol'
import { expect, test } from 'vitest'
import vectors from '../vectors/log-v1.vectors.json' with { type: 'json' }
import torchwood from '../vectors/torchwood.vectors.json' with { type: 'json' }
import { assertLogged, openNote, parseVkey } from './index.ts'

test('a browser checks proofs and notes of both kinds of keys, as Node does', () => {
  const { log, policy, entries, proofs } = vectors
  const runCheck = (entry: number, proof: number) =>
    assertLogged(proofs[proof] ?? '', { leaf: fromHex(entries[entry]?.logLeaf ?? ''), log: parseVkey(log), policy })
  expect(runCheck(3, 3).checkpoint.size).toBe(6)
  expect(() => runCheck(3, 2)).toThrow(expect.objectContaining({ code: 'inclusion_invalid' }))
  const { vkey, note } = torchwood
  expect(openNote(note, [parseVkey(vkey)]).verified).toHaveLength(1)
  expect(() => openNote(note.replace('\n1\n', '\n2\n'), [parseVkey(vkey)])).toThrow(
    expect.objectContaining({ code: 'note_signature_invalid' }),
  )
})
