import type { QuotePolicy } from '@countersign/attestation'

export type EnclavePolicy = Omit<QuotePolicy, 'reportData'> & {
  /** Configurations to accept. Left out in mock mode only. */
  configHashes?: readonly string[]
  /** Root secrets to accept, each by its commitment. Left out: any, as long as all enclaves have the same. */
  commitments?: readonly string[]
}
