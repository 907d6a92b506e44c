import type { Collateral } from '@countersign/attestation/core'
import { type QuoteSource, VendorError } from '@countersign/evidence/core'
import { type EnclaveConfig, toHex } from '@countersign/protocol/core'
import type { PeerEvidence } from '@countersign/root-secret'
import { EnclaveError } from '../errors.ts'

/** The sources of the evidence that an enclave shows a peer or a custodian. */
export type EvidenceDeps = {
  config: EnclaveConfig
  quoteSource: QuoteSource
  /** Intel's collateral for the machine that made a quote. */
  fetchCollateral(quote: Uint8Array): Promise<Collateral>
}

/** A quote over report data, with everything that a reader needs to verify it. */
export async function createEvidence(deps: EvidenceDeps, reportData: Uint8Array): Promise<PeerEvidence> {
  const { quote } = await deps.quoteSource.getQuote(reportData)
  return { quote: toHex(quote), config: deps.config, collateral: await deps.fetchCollateral(quote) }
}

/** The same for a call: without collateral, the caller gets an error that says so. */
export async function createEvidenceForCaller(deps: EvidenceDeps, reportData: Uint8Array): Promise<PeerEvidence> {
  try {
    return await createEvidence(deps, reportData)
  } catch (cause) {
    if (!(cause instanceof VendorError)) throw cause
    throw new EnclaveError('collateral_stale', 'no collateral for this machine', { details: cause.code, cause })
  }
}
