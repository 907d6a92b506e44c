import {
  isPlainObject,
  isPrefixedHex,
  isProofStatus,
  type ProofPayload,
  parseJson,
  ServiceError,
  signatureKinds,
  toMethodAndPath,
} from '@countersign/protocol'
import { VerifierError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import { parseHttpUrl } from './getBlock.ts'
import { MAX_MANIFEST_BYTES } from './parseManifest.ts'

/** A receipt of at most 256 KiB in any spelling, and other fields. */
const MAX_PROOF_BYTES = 1_048_576

/**
 * `GET /proof/:slug` from an untrusted service. Unlike the SDK, it accepts contradictory responses, because the caller compares them with the
 * evidence. Rejects with `proof_not_found` for an unknown slug, and otherwise with `fetch_failed`. Its `status` is 200 if the response is not
 * a proof.
 */
export async function getProof(
  { fetchBytes }: { fetchBytes: FetchBytes },
  { api, slug }: { api: string; slug: string },
): Promise<ProofPayload> {
  const url = `${api.replace(/\/+$/, '')}${toPath(slug)}`
  const { host } = new URL(url)
  let bytes: Uint8Array
  try {
    bytes = await fetchBytes({ url, maxBytes: MAX_PROOF_BYTES, accept: 'application/json' })
  } catch (error) {
    if (!(error instanceof VerifierError)) throw error
    if (error.status === 404) throw notFound(`${host} doesn’t know this slug`)
    throw error.status === 200 ? notProof(error.details ?? host) : error
  }
  const { proof, fault } = parseProof(bytes, slug)
  if (proof === undefined) throw notProof(`${host} returned ${fault}`)
  return proof
}

function toPath(slug: string): string {
  try {
    return toMethodAndPath('GET /proof/:slug', { slug }).path
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    throw notFound('invalid slug')
  }
}

function notFound(details: string) {
  return new VerifierError('proof_not_found', 'there is no such proof', { details, status: 404 })
}

function notProof(details: string) {
  return new VerifierError('fetch_failed', 'could not fetch', { details, status: 200, need: 'service' })
}

type Check = (value: unknown) => boolean

const isHex =
  (bytes: number): Check =>
  (value) =>
    isPrefixedHex(value, bytes)
const isText: Check = (value) => typeof value === 'string'
const isNatural: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value)

const isAnchor = ({ contract, id, chainId, size, index, path, txHash, blockNumber }: Record<string, unknown>) =>
  isPrefixedHex(contract, 20) &&
  [id, txHash].every(isHex(32)) &&
  [chainId, size, index, blockNumber].every(isNatural) &&
  Array.isArray(path) &&
  path.length <= 53 &&
  path.every((hash) => typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash))

/** Checks only the type of each member. The values are claims. */
const checks: Record<keyof ProofPayload, Check> = {
  slug: isText,
  // Transactions have no `kind`.
  kind: (value) =>
    value === undefined || (value !== 'transaction' && (signatureKinds as readonly unknown[]).includes(value)),
  txHash: isHex(32),
  chainId: isNatural,
  walletAddress: isHex(20),
  status: isProofStatus,
  ipfsCid: orNull(isText),
  ipfsUrl: orNull(isText),
  onchainTxHash: orNull(isHex(32)),
  onchainBlockNumber: orNull(isNatural),
  anchor: (value) => value === undefined || (isPlainObject(value) && isAnchor(value)),
  kmsQuoteVerified: (value) => typeof value === 'boolean',
  receipt: orNull((value) => typeof value === 'object'),
  createdAt: isText,
}

type Parsed = { proof: ProofPayload; fault?: undefined } | { proof?: undefined; fault: string }

function parseProof(bytes: Uint8Array, slug: string): Parsed {
  let value: unknown
  try {
    value = parseJson(bytes)
  } catch {
    return { fault: 'no JSON' }
  }
  if (!isPlainObject(value)) return { fault: 'no proof' }
  const members = value
  const bad = Object.entries(checks).find(([name, check]) => !check(members[name]))
  if (bad !== undefined) return { fault: `no proof: its ${bad[0]} is missing or malformed` }
  if (value.slug !== slug) return { fault: 'the proof of another slug' }
  return { proof: value as ProofPayload }
}

/** The file may include a manifest. */
const MAX_CONFIG_BYTES = 2 * MAX_MANIFEST_BYTES

/**
 * Finds the service for a proof link. The web app names it in `config.json`. An origin without that file counts as the service itself.
 * Ignores everything else in the file, because it comes from the party under verification.
 */
export async function findApi({ fetchBytes }: { fetchBytes: FetchBytes }, origin: string): Promise<string> {
  try {
    const url = `${origin}/config.json`
    const config = parseJson(await fetchBytes({ url, maxBytes: MAX_CONFIG_BYTES, accept: 'application/json' }))
    return parseHttpUrl(isPlainObject(config) ? config.apiBaseUrl : undefined) ?? origin
  } catch (error) {
    if (error instanceof ServiceError) return origin
    throw error
  }
}
