import { isCid } from '@countersign/receipt'
import { VerifierError } from './errors.ts'
import { isPathTaken } from './readFileBounded.ts'

/** What the reader asks about, by the way they name it. */
export type Subject =
  | { kind: 'file'; path: string }
  | { kind: 'proof'; slug: string; origin: string | undefined }
  | { kind: 'cid'; cid: string }
  | { kind: 'transaction'; txHash: string }

/** 128 bits in base64url. */
const SLUG = /^[A-Za-z0-9_-]{22}$/
/** The web app may add to the path of a proof. */
const PROOF_PATH = /\/proof\/([A-Za-z0-9_-]{22})(?:\/.*)?$/

export async function recogniseSubject(text: string): Promise<Subject> {
  if (/^https?:\/\//i.test(text)) return toProof(text)
  if (await isPathTaken(text)) return { kind: 'file', path: text }
  if (isCid(text)) return { kind: 'cid', cid: text }
  if (/^0x[0-9a-fA-F]{64}$/.test(text)) return { kind: 'transaction', txHash: text.toLowerCase() }
  if (SLUG.test(text)) return { kind: 'proof', slug: text, origin: undefined }
  throw unrecognised(
    `${text} (no such file, and neither a proof URL, a slug, a CID of a receipt nor a transaction hash)`,
  )
}

function toProof(text: string): Subject {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const slug = url === undefined ? undefined : PROOF_PATH.exec(url.pathname)?.[1]
  if (url === undefined || slug === undefined) throw unrecognised(`${text} (a proof URL ends in /proof/ and its slug)`)
  if (url.username !== '' || url.password !== '') throw unrecognised('a URL with credentials')
  return { kind: 'proof', slug, origin: url.origin }
}

function unrecognised(details: string) {
  return new VerifierError('invalid_arguments', 'cannot tell what to verify', { details })
}
