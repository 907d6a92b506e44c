import type { QuotePolicy, ReportPolicy, TdMeasurement, TdPlatform } from '@countersign/attestation'
import type { WitnessPolicy } from '@countersign/log'

/**
 * What the reader trusts, from anywhere but the receipt: a release manifest, or their own reading of the code. All hex is
 * lower case. A list that is missing or empty makes its step a skip, never a pass; so does a measurement that leaves a register open.
 */
export type Anchors = {
  measurements?: readonly TdMeasurement[]
  /** Runtime events of the enclave's event log, for measurements that leave RTMR3 open. */
  events?: NonNullable<QuotePolicy['events']>
  /** Machines that the enclave may run on. */
  platforms?: readonly TdPlatform[]
  configHashes?: readonly string[]
  /** `MEASUREMENT:HOST_DATA`; a measurement alone leaves the code unknown. */
  coordinatorMeasurements?: readonly string[]
  /**
   * Patch levels by AMD product. Every product that is not named fails, so `{}` accepts none. The step is a skip if this is missing or
   * names no level above zero for the product.
   */
  coordinatorMinimumTcb?: NonNullable<ReportPolicy['minimumTcb']>
  /** Ids of chips. Unlike the other anchors, one that is missing leaves nothing unknown but the machine. */
  coordinatorChips?: readonly string[]
  coordinatorConfigHashes?: readonly string[]
  /** Keys of entropy sources: Ed25519 of satellites, BLS of beacons. If any are named, they must include the key of a simulated source too. */
  entropyKeys?: readonly string[]
  /** Whose cosignatures of a log count, and how many are enough; each policy must be met, beside that of the enclave's settings. */
  logWitnesses?: readonly WitnessPolicy[]
  /** The address of the `ServiceAttestations` contract. */
  contract?: string | undefined
}
