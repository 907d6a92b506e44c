import { toCid } from '@countersign/receipt'
import { describe, expect, test } from 'vitest'
import { slug } from '../test/issues.ts'
import { withCode } from '../test/withCode.ts'
import { type NamedSubject, recogniseSubject } from './recogniseSubject.ts'

const cid = toCid(new Uint8Array())
const hyphenSlug = '-8Zk2vXo1fTn0uYbWcR_-Q'
const hash = `0x${'aB'.repeat(32)}`

describe('recognises the subject', () => {
  test.each<[string, NamedSubject]>([
    [`https://wallet.example/proof/${slug}`, { kind: 'proof', slug, origin: 'https://wallet.example' }],
    [
      `https://wallet.example/app/proof/${slug}/details?tab=2#top`,
      { kind: 'proof', slug, origin: 'https://wallet.example' },
    ],
    [`HTTP://127.0.0.1:8080/proof/${slug}/`, { kind: 'proof', slug, origin: 'http://127.0.0.1:8080' }],
    [`http://localhost:5173/proof/${slug}/?a=b#c`, { kind: 'proof', slug, origin: 'http://localhost:5173' }],
    [slug, { kind: 'proof', slug, origin: undefined }],
    [hyphenSlug, { kind: 'proof', slug: hyphenSlug, origin: undefined }],
    [cid, { kind: 'cid', cid }],
    [`ipfs://${cid}`, { kind: 'cid', cid }],
    [`ipfs://ipfs/${cid}/`, { kind: 'cid', cid }],
    [
      `https://gateway.example/ipfs/${cid}?format=raw`,
      { kind: 'cid', cid, link: `https://gateway.example/ipfs/${cid}?format=raw` },
    ],
    [`https://${cid}.ipfs.gateway.example`, { kind: 'cid', cid, link: `https://${cid}.ipfs.gateway.example/` }],
    [`http://${cid}.ipfs.localhost:8080/`, { kind: 'cid', cid, link: `http://${cid}.ipfs.localhost:8080/` }],
    [hash, { kind: 'transaction', txHash: hash.toLowerCase() }],
  ])('%s is recognised', (text, subject) => {
    expect(recogniseSubject(text)).toEqual(subject)
  })

  test.each([
    ['nothing', ''],
    ['spaces', '   '],
    ['a word', 'hello'],
    ['a file that is not there', './no-such-receipt.json'],
    ['a CID of version 0', 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnHFaP'],
    ['a CID of another codec', 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'],
    ['an ipfs link to another codec', 'ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'],
    ['a CID in upper case', cid.toUpperCase()],
    ['a CID that is cut', cid.slice(0, -1)],
    ['a CID with spaces around it', ` ${cid} `],
    ['a hash without 0x', 'ab'.repeat(32)],
    ['a hash that is too short', `0x${'ab'.repeat(31)}`],
    ['a hash that is much too short', '0x1234'],
    ['a hash that is too long', `${hash}00`],
    ['a slug that is too long', `${slug}A`],
    ['22 characters that are not 16 bytes', `${slug.slice(0, -1)}B`],
    ['a URL of a site', 'https://wallet.example/'],
    ['a URL of something else', `https://wallet.example/wallet/${slug}`],
    ['a proof URL without a slug', 'https://wallet.example/proof/'],
    ['a proof URL whose slug is too short', 'https://wallet.example/proof/short'],
    ['a proof URL whose slug is too long', `https://wallet.example/proof/${slug}A`],
    ['a proof URL with credentials', `https://user:secret@wallet.example/proof/${slug}`],
    ['another URL with credentials', 'https://user:secret@wallet.example/'],
    ['a URL of another protocol', `ftp://wallet.example/proof/${slug}`],
    ['a script', `javascript:alert('/proof/${slug}')`],
    ['a file URL', `file:///proof/${slug}`],
    ['a broken URL', `http://[/proof/${slug}`],
    ['a URL without a host', 'http://'],
    ['an address', `0x${'ab'.repeat(20)}`],
    ['a link without its protocol', `wallet.example/proof/${slug}`],
    ['a link with a port and without its protocol', `localhost:5173/proof/${slug}`],
    ['a file under a name of a gateway', `https://${cid}.ipfs.gateway.example/other.json`],
    ['a name of a gateway that has no CID', 'https://hello.ipfs.gateway.example/'],
    ['a name under another protocol of a gateway', `https://${cid}.ipns.gateway.example/`],
    ['a CID in front of nothing', `https://${cid}.ipfs/`],
  ])('%s is bad input, and no secret is repeated', (_, text) => {
    expect(() => recogniseSubject(text)).toThrow(withCode('invalid_arguments'))
    expect(() => recogniseSubject(text)).not.toThrow(withCode('invalid_arguments', 'secret'))
  })
})
