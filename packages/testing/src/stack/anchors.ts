import { parseQuote, parseReport, type TdMeasurement, toTdMeasurement } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { toHex } from '@countersign/protocol'
import type { LogFields } from './startService.ts'

/** What a verifier of one stack's proofs trusts. */
export type StackAnchors = {
  measurement: TdMeasurement
  configHash: string
  coordinatorMeasurement: string
  coordinatorConfigHash: string
  entropyKey: string
}

/**
 * The anchors of a running stack. They come from the services themselves, which is right for a stack on this machine and for no
 * other.
 */
export async function readAnchors(parameters: {
  /** Of the coordinator. */
  url: string
  /** The line with which the enclave said that it serves. */
  enclave: LogFields
  satellite: { publicKey: string }
}): Promise<StackAnchors> {
  const { url, enclave, satellite } = parameters
  const answer = await fetch(`${url}/health/attestation`)
  if (!answer.ok) throw new Error(`The coordinator has no attestation: ${answer.status}.`)
  const { measurement, configHash } = (await answer.json()) as LogFields
  return {
    measurement: measureSimulatedEnclave(),
    configHash: String(enclave.configHash),
    coordinatorMeasurement: String(measurement),
    coordinatorConfigHash: String(configHash),
    entropyKey: satellite.publicKey,
  }
}

/** Every register that can hold code: every simulated enclave has the same. It reports them to the coordinator only. */
export function measureSimulatedEnclave(): Required<TdMeasurement> {
  const quote = createSimulator({ at: new Date() }).quote({ reportData: new Uint8Array(64) })
  return toTdMeasurement(parseQuote(Uint8Array.from(quote)).body)
}

/** The measurement of every simulated coordinator. */
export function measureSimulatedCoordinator(): string {
  const report = createSimulator({ at: new Date() }).report({ reportData: new Uint8Array(64) })
  return toHex(parseReport(Uint8Array.from(report)).measurement)
}
