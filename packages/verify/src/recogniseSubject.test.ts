import { join } from 'node:path'
import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { createFolder, slug } from './issues.fake.ts'
import { recogniseSubject } from './recogniseSubject.ts'
import { withCode } from './withCode.fake.ts'

const cid = toCid(new Uint8Array())

describe('what is to be verified', () => {
  test.each([
    [`https://wallet.example/proof/${slug}`, 'https://wallet.example'],
    [`https://wallet.example/app/proof/${slug}/details?tab=2#top`, 'https://wallet.example'],
    [`HTTP://127.0.0.1:8080/proof/${slug}/`, 'http://127.0.0.1:8080'],
  ])('%s is a proof of that origin', async (text, origin) => {
    expect(await recogniseSubject(text)).toEqual({ kind: 'proof', slug, origin })
  })

  test('22 characters of base64url are a slug', async () => {
    expect(await recogniseSubject(slug)).toEqual({ kind: 'proof', slug, origin: undefined })
    expect(await recogniseSubject(`-_${slug.slice(2)}`)).toMatchObject({ kind: 'proof' })
  })

  test('a CID of a raw SHA-256 block is a CID', async () => {
    expect(await recogniseSubject(cid)).toEqual({ kind: 'cid', cid })
  })

  test('0x and 64 hex digits are a transaction, in lower case', async () => {
    expect(await recogniseSubject(`0x${'Ab'.repeat(32)}`)).toEqual({
      kind: 'transaction',
      txHash: `0x${'ab'.repeat(32)}`,
    })
  })

  test('whatever stands under a path is a file, even if its name looks like a CID or a slug', async () => {
    const folder = await createFolder({ 'receipt.json': 'x', [cid]: 'x' })
    for (const name of ['receipt.json', cid]) {
      const path = join(folder, name)
      expect(await recogniseSubject(path)).toEqual({ kind: 'file', path })
    }
    expect(await recogniseSubject(folder)).toEqual({ kind: 'file', path: folder })
  })

  test.each([
    ['nothing', ''],
    ['a file that is not there', './no-such-receipt.json'],
    ['a CID of version 0', 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnHFaP'],
    ['a CID of another codec', 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'],
    ['a CID in upper case', cid.toUpperCase()],
    ['a hash without 0x', 'ab'.repeat(32)],
    ['a hash that is too short', `0x${'ab'.repeat(31)}`],
    ['a slug that is too long', `${slug}A`],
    ['a URL of something else', `https://wallet.example/wallet/${slug}`],
    ['a proof URL without a slug', 'https://wallet.example/proof/'],
    ['a proof URL whose slug is too long', `https://wallet.example/proof/${slug}A`],
    ['a proof URL with credentials', `https://user:pass@wallet.example/proof/${slug}`],
    ['a URL of another protocol', `ftp://wallet.example/proof/${slug}`],
    ['a broken URL', `http://[/proof/${slug}`],
  ])('%s is bad input', async (_, text) => {
    await expect(recogniseSubject(text)).rejects.toThrow(withCode('invalid_arguments'))
  })
})
