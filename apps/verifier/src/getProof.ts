import { isProofStatus, type ProofStatus, ServiceError } from '@countersign/protocol'
import { type AttestationReceiptV1, canonicalBytes, isCid, toCid } from '@countersign/receipt'
import { VerifierError } from './errors.ts'
import { type FetchDeps, fetchBytes } from './fetchBytes.ts'

/** What of the answer to `GET /proof/:slug` a verifier has a use for. None of it is trusted. */
export type Proof = {
  status: ProofStatus
  txHash: string
  chainId: number
  walletAddress: string
  ipfsCid: string
  /** Where the service says the receipt can be had. */
  gateway: string | undefined
  /** The receipt as the service sent it, if it has the stated CID. */
  bytes: Uint8Array<ArrayBuffer> | undefined
}

/** A receipt of at most 256 KiB, in whatever spelling, and some fields beside it. */
const MAX_PROOF_BYTES = 1_048_576

export async function getProof(deps: FetchDeps, { api, slug }: { api: string; slug: string }): Promise<Proof> {
  const url = new URL(`${api}/proof/${slug}`)
  const bytes = await fetchBytes(deps, { url, maxBytes: MAX_PROOF_BYTES, accept: 'application/json' })
  return parseProof(bytes, { host: url.host, slug })
}

function parseProof(bytes: Uint8Array, { host, slug }: { host: string; slug: string }): Proof {
  const useless = (what: string) =>
    new VerifierError('fetch_failed', 'could not fetch', { details: `${host} answers with ${what}` })
  let proof: unknown
  try {
    proof = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw useless('something else than JSON')
  }
  if (typeof proof !== 'object' || proof === null) throw useless('something else than a proof')
  const { status, txHash, chainId, walletAddress, ipfsCid, ipfsUrl, receipt, ...rest } = proof as Record<
    string,
    unknown
  >
  if (rest.slug !== slug) throw useless('the proof of another slug')
  if (!isProofStatus(status)) throw useless('a proof without a status')
  if (ipfsCid === null) throw notPinned(status)
  if (typeof ipfsCid !== 'string' || !isCid(ipfsCid)) throw useless('a proof whose ipfsCid is no CID of a receipt')
  if (!isHex(txHash, 32) || !isHex(walletAddress, 20) || !Number.isSafeInteger(chainId)) {
    throw useless('a proof whose transaction is malformed')
  }
  return {
    status,
    txHash: txHash.toLowerCase(),
    chainId: chainId as number,
    walletAddress: walletAddress.toLowerCase(),
    ipfsCid,
    gateway: toGateway(ipfsUrl),
    bytes: toReceiptBytes(receipt, ipfsCid),
  }
}

function notPinned(status: ProofStatus) {
  const details =
    status === 'pin_failed'
      ? 'the service gave up pinning it (pin_failed); only its operator can export it'
      : `the service is still at it (${status}); try again in a minute`
  return new VerifierError('proof_not_pinned', 'the receipt is not published', { details })
}

/** The service sends the receipt as an object. It stands for the pinned bytes only if it leads to exactly those. */
function toReceiptBytes(receipt: unknown, cid: string): Proof['bytes'] {
  try {
    const bytes = canonicalBytes(receipt as AttestationReceiptV1)
    return toCid(bytes) === cid ? bytes : undefined
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

function toGateway(ipfsUrl: unknown): string | undefined {
  if (typeof ipfsUrl !== 'string' || !/^https?:\/\//.test(ipfsUrl) || !URL.canParse(ipfsUrl)) return undefined
  return new URL(ipfsUrl).origin
}

function isHex(value: unknown, bytes: number): value is string {
  return typeof value === 'string' && new RegExp(`^0x[0-9a-fA-F]{${2 * bytes}}$`).test(value)
}
