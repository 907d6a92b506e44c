import { join } from 'node:path'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { slug } from '../../../packages/verify/test/issues.ts'
import { createFolder } from '../test/folder.ts'
import { recogniseCliSubject } from './verify.ts'

const cid = toCid(new Uint8Array())

describe('recogniseCliSubject', () => {
  test('prefers an existing file, even if its name looks like a CID or slug', async () => {
    const folder = await createFolder({ 'receipt.json': 'x', [cid]: 'x' })
    for (const name of ['receipt.json', cid]) {
      const path = join(folder, name)
      expect(await recogniseCliSubject(path)).toEqual({ kind: 'file', path })
    }
    expect(await recogniseCliSubject(folder)).toEqual({ kind: 'file', path: folder })
  })

  test('recognizes other subjects by their format', async () => {
    expect(await recogniseCliSubject(slug)).toEqual({ kind: 'proof', slug, origin: undefined })
  })

  test.each(['no-such-receipt.json', '../receipt', '/receipt.CAR', `./${cid}`])(
    'rejects %s as a missing file',
    async (text) => {
      await expect(recogniseCliSubject(text)).rejects.toMatchObject({
        code: 'invalid_arguments',
        details: `file not found: ${text}`,
      })
    },
  )

  test('treats a link that ends like a file as a link, and does not print its secret', async () => {
    const link = recogniseCliSubject('https://user:secret@wallet.example/receipt.json')
    await expect(link).rejects.toMatchObject({ code: 'invalid_arguments', details: 'this link contains credentials' })
  })
})
