import { parseQuote, parseReport, parseSnpTcb, type TdMeasurement, toTdMeasurement } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { fromHex, toHex } from '@countersign/protocol'
import type { LogFields } from './startService.ts'

/** What a verifier of one stack's proofs trusts. */
export type StackAnchors = {
  measurement: TdMeasurement
  configHash: string
  coordinatorMeasurement: string
  coordinatorConfigHash: string
  /** As `--coordinator-tcb` takes it. */
  coordinatorTcb: string
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
  const { report, configHash } = (await answer.json()) as LogFields
  return {
    measurement: measureSimulatedEnclave(),
    configHash: String(enclave.configHash),
    ...measureCoordinator(fromHex(String(report))),
    coordinatorConfigHash: String(configHash),
    entropyKey: satellite.publicKey,
  }
}

/** Every register that can hold code: every simulated enclave has the same. It reports them to the coordinator only. */
export function measureSimulatedEnclave(): Required<TdMeasurement> {
  const quote = createSimulator({ at: new Date() }).quote({ reportData: new Uint8Array(64) })
  return toTdMeasurement(parseQuote(Uint8Array.from(quote)).body)
}

/** Code and patch levels of every simulated coordinator. */
export function measureSimulatedCoordinator(): Pick<StackAnchors, 'coordinatorMeasurement' | 'coordinatorTcb'> {
  return measureCoordinator(createSimulator({ at: new Date() }).report({ reportData: new Uint8Array(64) }))
}

function measureCoordinator(report: Uint8Array) {
  const { measurement, hostData, reportedTcb } = parseReport(Uint8Array.from(report))
  // Simulated chips are all of this product.
  const { bl, tee, snp, ucode } = parseSnpTcb(reportedTcb, 'Milan')
  return {
    coordinatorMeasurement: `${toHex(measurement)}:${toHex(hostData)}`,
    coordinatorTcb: `Milan:bl=${bl},tee=${tee},snp=${snp},ucode=${ucode}`,
  }
}
