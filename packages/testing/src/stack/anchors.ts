import { parseQuote, parseReport, parseSnpTcb, type TdMeasurement, toTdMeasurement } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { fromHex, toHex } from '@countersign/protocol'
import type { LogFields } from './startService.ts'

/** The values that a verifier of a stack's proofs trusts. */
export type StackAnchors = {
  measurement: TdMeasurement
  configHash: string
  coordinatorMeasurement: string
  coordinatorConfigHash: string
  /** In the form of `--coordinator-tcb`. */
  coordinatorTcb: string
  entropyKey: string
}

/** Reads the anchors of a running stack from its services. This is only safe for a stack on this machine. */
export async function readAnchors(parameters: {
  /** URL of the coordinator. */
  url: string
  /** The "started" log line of the enclave. */
  enclave: LogFields
  satellite: { publicKey: string }
}): Promise<StackAnchors> {
  const { url, enclave, satellite } = parameters
  const answer = await fetch(`${url}/health/attestation`)
  if (!answer.ok) throw new Error(`reading the coordinator's attestation failed with ${answer.status}`)
  const { report, configHash } = (await answer.json()) as LogFields
  return {
    measurement: measureSimulatedEnclave(),
    configHash: String(enclave.configHash),
    ...measureCoordinator(fromHex(String(report))),
    coordinatorConfigHash: String(configHash),
    entropyKey: satellite.publicKey,
  }
}

/** All code measurements, which are the same for every simulated enclave. An enclave reports them only to coordinators. */
export function measureSimulatedEnclave(): Required<TdMeasurement> {
  const quote = createSimulator({ at: new Date() }).quote({ reportData: new Uint8Array(64) })
  return toTdMeasurement(parseQuote(Uint8Array.from(quote)).body)
}

/** Measurement and TCB, which are the same for every simulated coordinator. */
export function measureSimulatedCoordinator(): Pick<StackAnchors, 'coordinatorMeasurement' | 'coordinatorTcb'> {
  return measureCoordinator(createSimulator({ at: new Date() }).report({ reportData: new Uint8Array(64) }))
}

function measureCoordinator(report: Uint8Array) {
  const { measurement, hostData, reportedTcb } = parseReport(Uint8Array.from(report))
  // All simulated chips are of this product.
  const { bl, tee, snp, ucode } = parseSnpTcb(reportedTcb, 'Milan')
  return {
    coordinatorMeasurement: `${toHex(measurement)}:${toHex(hostData)}`,
    coordinatorTcb: `Milan:bl=${bl},tee=${tee},snp=${snp},ucode=${ucode}`,
  }
}
