import type { QuotePolicy, TdMeasurement, TdPlatform } from '@countersign/attestation'

/**
 * What the reader trusts, from anywhere but the receipt: a release manifest, or their own reading of the code. All hex is
 * lower case. One that is missing or empty makes its step a skip, never a pass; so does a measurement that leaves a register open.
 */
export type Anchors = {
  measurements?: readonly TdMeasurement[]
  /** Runtime events of the enclave's event log, for measurements that leave RTMR3 open. */
  events?: NonNullable<QuotePolicy['events']>
  /** Machines that the enclave may run on. */
  platforms?: readonly TdPlatform[]
  configHashes?: readonly string[]
  coordinatorMeasurements?: readonly string[]
  coordinatorConfigHashes?: readonly string[]
  /** Ed25519 keys of entropy sources. */
  entropyKeys?: readonly string[]
  /** The address of the `ServiceAttestations` contract. */
  contract?: string
}
