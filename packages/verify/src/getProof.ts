import { isProofStatus, type ProofPayload } from '@countersign/protocol'
import { FetchError, fetchBytes } from './fetchBytes.ts'

/** Why the service's answer is of no use. */
export type ProofErrorCode =
  /** Check the link: the service knows no such proof. */
  | 'not_found'
  /** Retry: no answer, or a failure. */
  | 'unavailable'
  /** Check the address: what answered is not a service like this one. */
  | 'not_a_proof'

export class ProofError extends Error {
  override name = 'ProofError'
  readonly code: ProofErrorCode
  constructor(code: ProofErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** A receipt of at most 256 KiB, in whatever spelling, and some fields beside it. */
const MAX_PROOF_BYTES = 1_048_576

/**
 * `GET /proof/:slug`, for a page that holds the answer against the evidence. Unlike the SDK, it takes answers that
 * contradict themselves: telling how is what the page is for. It rejects with a `ProofError`.
 */
export async function getProof({ apiBaseUrl, slug }: { apiBaseUrl: string; slug: string }): Promise<ProofPayload> {
  const url = `${apiBaseUrl.replace(/\/+$/, '')}/proof/${encodeURIComponent(slug)}`
  const { host } = new URL(url)
  // `.` and `..` would be steps in the path.
  if (slug === '' || /^\.+$/.test(slug)) throw new ProofError('not_found', `${slug} is no slug`)
  const bytes = await fetchBytes({ url, maxBytes: MAX_PROOF_BYTES, accept: 'application/json' }).catch((error) => {
    throw error instanceof FetchError ? toProofError(error) : error
  })
  const { proof, fault } = parseProof(bytes, slug)
  if (proof === undefined) throw new ProofError('not_a_proof', `${host} answers with ${fault}`)
  return proof
}

function toProofError(error: FetchError): ProofError {
  const { status, message } = error
  const code = status === 404 ? 'not_found' : status === 200 ? 'not_a_proof' : 'unavailable'
  return new ProofError(code, message, { cause: error })
}

type Check = (value: unknown) => boolean

const isHex =
  (bytes: number): Check =>
  (value) =>
    typeof value === 'string' && new RegExp(`^0x[0-9a-fA-F]{${2 * bytes}}$`).test(value)
const isText: Check = (value) => typeof value === 'string'
const isNatural: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)

/** The kind of each member alone; what it says is a claim. */
const checks: Record<keyof ProofPayload, Check> = {
  slug: isText,
  txHash: isHex(32),
  chainId: isNatural,
  walletAddress: isHex(20),
  status: isProofStatus,
  ipfsCid: orNull(isText),
  ipfsUrl: orNull(isText),
  onchainTxHash: orNull(isHex(32)),
  onchainBlockNumber: orNull(isNatural),
  kmsQuoteVerified: (value) => typeof value === 'boolean',
  receipt: orNull((value) => typeof value === 'object'),
  createdAt: isText,
}

type Parsed = { proof: ProofPayload; fault?: undefined } | { proof?: undefined; fault: string }

function parseProof(bytes: Uint8Array, slug: string): Parsed {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return { fault: 'something else than JSON' }
  }
  if (typeof value !== 'object' || value === null) return { fault: 'something else than a proof' }
  const members = value as Record<string, unknown>
  const bad = Object.entries(checks).find(([name, check]) => !check(members[name]))
  if (bad !== undefined) return { fault: `something else than a proof: its ${bad[0]} is missing or malformed` }
  // The proof of another signature must never pass for this one.
  if (members.slug !== slug) return { fault: 'the proof of another slug' }
  return { proof: members as ProofPayload }
}
