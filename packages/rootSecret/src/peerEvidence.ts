import {
  assertCollateral,
  assertQuotePolicy,
  type Collateral,
  type QuotePolicy,
  type VerifiedQuote,
  type Verifier,
} from '@countersign/attestation'
import type { QuoteSource } from '@countersign/evidence'
import {
  assertEnclaveConfig,
  type EnclaveConfig,
  fromHex,
  hashEnclaveConfig,
  type PeerEvidence,
  toHex,
} from '@countersign/protocol'

/** What an enclave shows of itself to a peer or a custodian. */
export type EvidenceDeps = {
  config: EnclaveConfig
  quoteSource: QuoteSource
  /** What Intel says of the machine that made a quote. */
  fetchCollateral(quote: Uint8Array): Promise<Collateral>
}

/** A quote over report data, with all that a reader needs to judge it. */
export async function createEvidence(deps: EvidenceDeps, reportData: Uint8Array): Promise<PeerEvidence> {
  const { quote } = await deps.quoteSource.getQuote(reportData)
  return { quote: toHex(quote), config: deps.config, collateral: await deps.fetchCollateral(quote) }
}

/** Real quotes are 5 to 8 KiB. */
const MAX_QUOTE_BYTES = 65_536

/** Narrows a parsed value to evidence. Throws where a member is missing, unknown or of another form. */
export function parsePeerEvidence(value: unknown): PeerEvidence {
  if (typeof value !== 'object' || value === null) throw new TypeError('not evidence')
  const { quote, config, collateral, ...rest } = value as Record<string, unknown>
  if (Object.keys(rest).length > 0) throw new TypeError('not evidence')
  if (typeof quote !== 'string' || quote.length > 2 * MAX_QUOTE_BYTES || !/^(?:[0-9a-f]{2})+$/.test(quote)) {
    throw new TypeError('not evidence')
  }
  assertEnclaveConfig(config)
  // Text that is no Unicode has no hash, which nobody should learn later than here.
  hashEnclaveConfig(config)
  assertCollateral(collateral)
  return { quote, config, collateral }
}

/**
 * The quote is genuine at this time, of a machine and code that the policy lists, and over this report data. What collateral
 * the peer sends is its own choice among what Intel has signed and what is still in date; a policy can ask for newer. Throws
 * `QuoteError` or `PolicyError`.
 */
export async function verifyEvidence(
  { verifier, policy, at }: { verifier: Verifier; policy: QuotePolicy; at: Date },
  { evidence, reportData }: { evidence: PeerEvidence; reportData: Uint8Array },
): Promise<VerifiedQuote> {
  const { quote, collateral } = evidence
  assertCollateral(collateral)
  const verified = await verifier.verifyQuote({ quote: fromHex(quote), collateral, at })
  assertQuotePolicy(verified, { ...policy, reportData })
  return verified
}
