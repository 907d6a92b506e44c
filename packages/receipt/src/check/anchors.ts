import type { QuotePolicy, ReportPolicy, TdMeasurement, TdPlatform } from '@countersign/attestation'
import type { WitnessPolicy } from '@countersign/log'

/**
 * The values that a reader trusts, from a release manifest or from their own reading of the code, never from the receipt. All hex is lower
 * case. With a missing or empty list, its step is skipped, never passed. The same applies to a measurement that leaves a register open.
 */
export type Anchors = {
  measurements?: readonly TdMeasurement[]
  /** Runtime events of the enclave's event log, for measurements that leave RTMR3 open. */
  events?: NonNullable<QuotePolicy['events']>
  /** The accepted machines. */
  platforms?: readonly TdPlatform[]
  configHashes?: readonly string[]
  /** `MEASUREMENT:HOST_DATA`. Without HOST_DATA, the code is unknown. */
  coordinatorMeasurements?: readonly string[]
  /**
   * Minimum patch levels by AMD product. Products that are not listed fail, so `{}` accepts none. The step is skipped if this is missing or
   * has no level above zero for the product.
   */
  coordinatorMinimumTcb?: NonNullable<ReportPolicy['minimumTcb']>
  /** Accepted chip IDs. Unlike with other missing anchors, the code stays known without them. */
  coordinatorChips?: readonly string[]
  coordinatorConfigHashes?: readonly string[]
  /** Keys of entropy sources: Ed25519 of satellites, BLS of beacons. If there are any, they must include a simulated source's key too. */
  entropyKeys?: readonly string[]
  /** Required witnesses of the log, with their quorums. Each policy must be satisfied, in addition to that of the enclave's settings. */
  logWitnesses?: readonly WitnessPolicy[]
  /** The address of the `ServiceAttestations` contract. */
  contract?: string | undefined
  /** `LogWitness` contracts with the ids of trusted logs, each up to the size at which it ended. */
  logContracts?: readonly LogContract[] | undefined
}

export type LogContract = { address: string; logs: readonly { id: string; upTo?: number | undefined }[] }
