/** What a visitor pasted, by the way it names a receipt. */
export type PastedSubject =
  | { kind: 'cid'; cid: string }
  | { kind: 'transaction'; txHash: string }
  /** `origin` is that of a link; a bare slug is one of this service. */
  | { kind: 'proof'; slug: string; origin: string | undefined }
  | { kind: 'unknown'; reason: string }

/** 128 bits in base64url. */
const SLUG = /^[A-Za-z0-9_-]{22}$/
const PROOF_PATH = /\/proof\/([A-Za-z0-9_-]{22})(?:\/.*)?$/
/** Version 1, raw, SHA-256; the worker reads it strictly. */
const CID = /^bafkrei[a-z2-7]{52}$/
const IPFS_PATH = /\/ipfs\/([^/]+)\/?$/

/** Tells a CID, a gateway's link to one, a proof link, a slug and a transaction hash apart. */
export function recogniseSubject(input: string): PastedSubject {
  const text = input.trim()
  if (text === '') return unknown('Paste something first.')
  if (CID.test(text)) return { kind: 'cid', cid: text }
  if (/^(?:0x)?[0-9a-fA-F]{64}$/i.test(text)) {
    return { kind: 'transaction', txHash: `0x${text.replace(/^0x/i, '').toLowerCase()}` }
  }
  if (SLUG.test(text)) return { kind: 'proof', slug: text, origin: undefined }
  if (/^[a-z][a-z0-9+.-]*:/i.test(text)) return recogniseLink(text)
  if (/^0x/i.test(text)) return unknown('A transaction hash is 0x and 64 hex digits.')
  if (/^(?:bafy|Qm|b[a-z2-7]{20,})/.test(text)) {
    return unknown('This is not the CID of a receipt: those begin with bafkrei and have 59 characters.')
  }
  return unknown('This is neither a CID, a proof link, a slug of 22 characters, nor a transaction hash.')
}

function recogniseLink(text: string): PastedSubject {
  if (/^ipfs:\/\//i.test(text)) {
    const cid = text.slice('ipfs://'.length).replace(/\/$/, '')
    return CID.test(cid) ? { kind: 'cid', cid } : unknown('This ipfs link does not name a receipt.')
  }
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return unknown('Of links, only http, https and ipfs ones can lead to a receipt.')
  }
  if (url.username !== '' || url.password !== '') return unknown('This link has credentials in it.')
  const slug = PROOF_PATH.exec(url.pathname)?.[1]
  if (slug !== undefined) return { kind: 'proof', slug, origin: url.origin }
  const cid = IPFS_PATH.exec(url.pathname)?.[1]
  // The CID says which bytes; whose gateway the link names does not matter.
  if (cid !== undefined && CID.test(cid)) return { kind: 'cid', cid }
  return unknown('A proof link ends in /proof/ and a slug of 22 characters.')
}

function unknown(reason: string): PastedSubject {
  return { kind: 'unknown', reason }
}
