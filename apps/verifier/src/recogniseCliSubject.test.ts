import { join } from 'node:path'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { slug } from '../../../packages/verify/test/issues.ts'
import { createFolder } from '../test/folder.ts'
import { recogniseCliSubject } from './verify.ts'

const cid = toCid(new Uint8Array())

describe('what the command line is asked to verify', () => {
  test('whatever stands under a path is a file, even if its name looks like a CID or a slug', async () => {
    const folder = await createFolder({ 'receipt.json': 'x', [cid]: 'x' })
    for (const name of ['receipt.json', cid]) {
      const path = join(folder, name)
      expect(await recogniseCliSubject(path)).toEqual({ kind: 'file', path })
    }
    expect(await recogniseCliSubject(folder)).toEqual({ kind: 'file', path: folder })
  })

  test('all else is recognised by its form', async () => {
    expect(await recogniseCliSubject(slug)).toEqual({ kind: 'proof', slug, origin: undefined })
  })

  test.each(['no-such-receipt.json', '../receipt', '/receipt.CAR', `./${cid}`])(
    '%s names a file that is not there',
    async (text) => {
      await expect(recogniseCliSubject(text)).rejects.toMatchObject({
        code: 'invalid_arguments',
        details: `there is no file ${text}`,
      })
    },
  )

  test('a link that ends like a file is a link, and its secret is not repeated', async () => {
    const link = recogniseCliSubject('https://user:secret@wallet.example/receipt.json')
    await expect(link).rejects.toMatchObject({ code: 'invalid_arguments', details: 'this link contains credentials' })
  })
})
