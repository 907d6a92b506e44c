import { join } from 'node:path'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { slug } from '../../../packages/verify/src/issues.fake.ts'
import { createFolder } from './folder.fake.ts'
import { recogniseCliSubject } from './recogniseCliSubject.ts'

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
    await expect(recogniseCliSubject('./no-such-receipt.json')).rejects.toMatchObject({ code: 'invalid_arguments' })
  })
})
