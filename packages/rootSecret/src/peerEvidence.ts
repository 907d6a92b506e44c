import {
  assertCollateral,
  assertQuotePolicy,
  type QuotePolicy,
  type VerifiedQuote,
  type Verifier,
} from '@countersign/attestation'
import { assertEnclaveConfig, fromHex, hashEnclaveConfig, type PeerEvidence } from '@countersign/protocol'

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
  // Text that is not well-formed Unicode has no hash, which should show here and not later.
  hashEnclaveConfig(config)
  assertCollateral(collateral)
  return { quote, config, collateral }
}

/**
 * The quote is genuine at this time, of a machine and code that the policy lists, and over this report data. What collateral
 * the peer sends is its own choice among what Intel has signed and what is still in date; a policy can ask for newer. Throws
 * `QuoteError` or `PolicyError`.
 */
export async function verifyPeerEvidence(
  { verifier, policy, at }: { verifier: Verifier; policy: QuotePolicy; at: Date },
  { evidence, reportData }: { evidence: PeerEvidence; reportData: Uint8Array },
): Promise<VerifiedQuote> {
  const { quote, collateral } = evidence
  assertCollateral(collateral)
  const verified = await verifier.verifyQuote({ quote: fromHex(quote), collateral, at })
  assertQuotePolicy(verified, { ...policy, reportData })
  return verified
}
