import { isPrefixedHex, isSlug } from '@countersign/protocol'
import { isCid } from '@countersign/receipt'
import { VerifierError } from './errors.ts'
import { findSubdomainCid } from './getBlock.ts'

export type NamedSubject =
  /** `link` is the gateway's link. */
  | { kind: 'cid'; cid: string; link?: string }
  | { kind: 'transaction'; txHash: string }
  /** `origin` is that of a proof URL; a bare slug has none. */
  | { kind: 'proof'; slug: string; origin: string | undefined }

/** The web app may append to the path of a proof. */
const PROOF_PATH = /\/proof\/([^/]+)(?:\/.*)?$/
const IPFS_PATH = /\/ipfs\/([^/]+)\/?$/

/** Recognises a CID, a gateway link, a proof URL, a slug or a transaction hash. Throws `invalid_arguments`. */
export function recogniseSubject(text: string): NamedSubject {
  if (isCid(text)) return { kind: 'cid', cid: text }
  if (isPrefixedHex(text, 32)) return { kind: 'transaction', txHash: text.toLowerCase() }
  if (isSlug(text)) return { kind: 'proof', slug: text, origin: undefined }
  if (/^[a-z][a-z0-9+.-]*:(?!\d)/i.test(text)) return recogniseLink(text)
  if (/^0x[0-9a-f]{40}$/i.test(text))
    throw unrecognised('this is an address; a transaction hash is 0x and 64 hex digits')
  if (/^(?:0x)?[0-9a-f]{40,}$/i.test(text) || /^0x/i.test(text)) {
    throw unrecognised('a transaction hash is 0x and 64 hex digits')
  }
  if (/^(?:bafy|Qm|b[a-z2-7]{20,})/.test(text)) {
    throw unrecognised('not the CID of a receipt: expected bafkrei… with 59 characters')
  }
  if (/^[^\s/]+\/(?:proof|ipfs)\//.test(text)) throw unrecognised('a link must start with https:// or http://')
  throw unrecognised('expected a CID, a proof link, a slug of 22 characters or a transaction hash')
}

function recogniseLink(text: string): NamedSubject {
  if (/^ipfs:\/\//i.test(text)) {
    // Some links repeat the gateway's path after the protocol.
    const cid = text.replace(/^ipfs:\/\/(?:ipfs\/)?/i, '').replace(/\/$/, '')
    if (isCid(cid)) return { kind: 'cid', cid }
    throw unrecognised('this ipfs link has no CID of a receipt: expected bafkrei… with 59 characters')
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw unrecognised('only http, https and ipfs links are supported')
  }
  if (url.username !== '' || url.password !== '') throw unrecognised('this link contains credentials')
  const slug = PROOF_PATH.exec(url.pathname)?.[1]
  if (isSlug(slug)) return { kind: 'proof', slug, origin: url.origin }
  const cid = IPFS_PATH.exec(url.pathname)?.[1] ?? (url.pathname === '/' ? findSubdomainCid(url.host) : undefined)
  if (cid !== undefined && isCid(cid)) return { kind: 'cid', cid, link: url.href }
  throw unrecognised(
    'a proof link ends in /proof/ and a slug of 22 characters, a gateway link in /ipfs/ and the CID of a receipt',
  )
}

function unrecognised(details: string) {
  return new VerifierError('invalid_arguments', 'cannot tell what to verify', { details })
}
