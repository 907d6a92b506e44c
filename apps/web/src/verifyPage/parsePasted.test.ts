import { toCid } from '@countersign/receipt'
import { expect, test } from 'vitest'
import { parsePasted } from './SubjectForm.tsx'

const cid = toCid(new Uint8Array())

test('ignores white space around the text', () => {
  expect(parsePasted(`  ${cid}\n`)).toEqual({ kind: 'cid', cid })
})

test.each([
  '',
  '   ',
  'hello',
  '0x1234',
  'ab'.repeat(32),
  'https://user:secret@wallet.example/',
  'ftp://x',
  cid.slice(1),
])('rejects %j with a sentence', (text) => {
  const pasted = parsePasted(text)
  expect(pasted).toMatchObject({ kind: 'unknown', reason: expect.stringMatching(/^[A-Z].*\.$/) })
  expect(JSON.stringify(pasted)).not.toContain('secret')
})
