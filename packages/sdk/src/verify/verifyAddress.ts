import type { Hex, OwnerIdentity, ProofPayload } from '@countersign/protocol'
import type { Outcome, VerifyRequest } from '@countersign/verify'
import type { Connection } from '../client/connection.ts'
import { createError } from '../client/errors.ts'
import { REQUEST_TIMEOUT_MS } from '../client/request.ts'
import type { AttestAddressResult } from '../vaults/vaultCalls.ts'

export type VerifyAddressParameters = {
  address: Hex
  /** Of a vault. Without it, the address must be a wallet without rules. */
  policyHash?: string | undefined
  /** The result of `attestWallet` or `attestVault`. */
  attested: AttestAddressResult
  /** The members of the owner's identity that must match. After a direct sign-in, the result of `readIdentity`, whose null never matches. */
  owner: Partial<OwnerIdentity> | null
  /** The trust anchors, and where to find receipts and events. The service is also a gateway. */
  trust: Omit<VerifyRequest, 'subject' | 'opening' | 'api'>
  /** How long to wait until the service has published the proof. Defaults to a minute. */
  timeoutMs?: number | undefined
  signal?: AbortSignal | undefined
  /** Runs the verifier, such as in a worker. By default, it is loaded at the first call and runs in this thread. */
  verify?: ((request: VerifyRequest) => Promise<Outcome>) | undefined
}

const TIMEOUT_MS = 60_000
const POLL_INTERVAL_MS = 1000

/** The chain confirms only the time, which says nothing about the owner. */
const PROVEN: readonly Outcome['conclusion'][] = ['accepted', 'unbounded', 'late']

/**
 * Verifies that an address belongs to this user, and for a vault to these rules, before anyone sends funds to it. Returns the owner. Fails
 * with `owner_mismatch` for another owner, and with `address_not_verified` if the proof doesn't hold.
 *
 * @example
 * const owner = await session.readIdentity(client.config)
 * const attested = await attestWallet(client)
 * await verifyAddress(client, { address: wallet.address, attested, owner, trust: { manifests } })
 */
export async function verifyAddress(
  client: Pick<Connection, 'api' | 'config'>,
  { address, policyHash, attested, owner, trust, ...options }: VerifyAddressParameters,
): Promise<OwnerIdentity> {
  const { verify = verifyHere } = options
  const { attestationSlug: slug, owner: opening } = attested
  const proof = await waitForReceipt(client, slug, options)
  const request: VerifyRequest = {
    ...trust,
    subject: { kind: 'proof', slug, api: client.config.apiBaseUrl, proof },
    api: client.config.apiBaseUrl,
    opening: new TextEncoder().encode(JSON.stringify(opening)),
  }
  const {
    conclusion,
    steps,
    receipt,
    owner: shown,
  } = await verify(request).catch((cause: Error & { details?: string }) => {
    throw notVerified(cause.details ?? cause.message, { cause, retryable: true })
  })
  options.signal?.throwIfAborted()
  if (!PROVEN.includes(conclusion)) {
    const failed = steps.find(({ status }) => status === 'fail')
    throw notVerified(`${conclusion}${failed ? `, ${failed.id}` : ''}`, { retryable: conclusion === 'incomplete' })
  }
  const subject = receipt && 'kind' in receipt && receipt.kind === 'address' ? receipt.subject : undefined
  if (subject?.address !== address.toLowerCase()) throw mismatch('the proof is about another address')
  if (subject.policy !== (policyHash ?? null)) throw mismatch('the address has other rules')
  if (shown === undefined) throw mismatch('the opening is of another owner')
  if (owner === null) throw mismatch('no user is signed in')
  for (const name of ['issuer', 'subject', 'email'] as const) {
    if (owner[name] !== undefined && owner[name] !== shown[name]) throw mismatch(`${name} is ${shown[name]}`)
  }
  return shown
}

async function verifyHere(request: VerifyRequest): Promise<Outcome> {
  const { createFetchBytes, verify } = await import('@countersign/verify')
  const fetch: typeof globalThis.fetch = (...parameters) => globalThis.fetch(...parameters)
  return verify(
    { fetchBytes: createFetchBytes({ fetch, timeoutMs: REQUEST_TIMEOUT_MS }), now: () => new Date() },
    request,
  )
}

/** A new proof takes some seconds to be published. */
async function waitForReceipt(
  { api }: Pick<Connection, 'api'>,
  slug: string,
  { timeoutMs = TIMEOUT_MS, signal }: Pick<VerifyAddressParameters, 'timeoutMs' | 'signal'>,
): Promise<ProofPayload> {
  const endMs = Date.now() + timeoutMs
  for (;;) {
    const proof = await api.getProof(slug, { signal })
    if (proof.ipfsCid !== null) return proof
    if (proof.status === 'pin_failed' || Date.now() >= endMs) {
      throw notVerified(`the service has not published the proof (${proof.status})`, { retryable: true })
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
  }
}

function notVerified(details: string, options: { cause?: unknown; retryable: boolean }) {
  return createError('address_not_verified', 'the owner of the address could not be verified', { details, ...options })
}

function mismatch(details: string) {
  return createError('owner_mismatch', 'the address belongs to someone else', { details })
}
