import { expect, test } from 'vitest'
import { recogniseSubject } from './recogniseSubject.ts'

const cid = 'bafkreidbkt37u6a7rjd2iv752qqarmf6nwyqii4pf3ief5f63wrff2dade'
const slug = '-8Zk2vXo1fTn0uYbWcR3d_'
const hash = `0x${'aB'.repeat(32)}`

test.each<[string, ReturnType<typeof recogniseSubject>]>([
  [cid, { kind: 'cid', cid }],
  [`  ${cid}\n`, { kind: 'cid', cid }],
  [`ipfs://${cid}`, { kind: 'cid', cid }],
  [`https://gateway.example/ipfs/${cid}?format=raw`, { kind: 'cid', cid }],
  [hash, { kind: 'transaction', txHash: hash.toLowerCase() }],
  [hash.slice(2), { kind: 'transaction', txHash: hash.toLowerCase() }],
  [slug, { kind: 'proof', slug, origin: undefined }],
  [`https://wallet.example/proof/${slug}`, { kind: 'proof', slug, origin: 'https://wallet.example' }],
  [`http://localhost:5173/proof/${slug}/?a=b#c`, { kind: 'proof', slug, origin: 'http://localhost:5173' }],
])('%s is recognised', (text, subject) => {
  expect(recogniseSubject(text)).toEqual(subject)
})

test.each([
  '',
  '   ',
  'hello',
  '0x1234',
  `${hash}00`,
  cid.slice(0, -1),
  cid.toUpperCase(),
  'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPbdG',
  'https://wallet.example/',
  'https://wallet.example/proof/short',
  `https://user:secret@wallet.example/proof/${slug}`,
  `javascript:alert('/proof/${slug}')`,
  `file:///proof/${slug}`,
  'ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi',
  'http://',
])('%j is not, and it is said why', (text) => {
  const subject = recogniseSubject(text)
  expect(subject).toMatchObject({ kind: 'unknown', reason: expect.stringMatching(/\.$/) })
  expect(JSON.stringify(subject)).not.toContain('secret')
})
