import { assertReportPolicy, type ReportPolicy, type TrustedRoot, type Verifier } from '@countersign/attestation'
import { computeSnpReportData, computeSnpReportDataV2, equalBytes, fromHex, toHex } from '@countersign/protocol'
import type { ReceiptView } from '../receiptView.ts'
import type { Anchors } from './anchors.ts'
import { failIf, needs, StepSkip, type Transcript } from './transcript.ts'

export type CoordinatorPolicy = Omit<ReportPolicy, 'measurements' | 'reportData'>

/** report → policy → key → measurement → config: who handled the request. */
export async function checkCoordinator(
  { run }: Transcript,
  receipt: ReceiptView,
  context: { verifier: Verifier; at: Date; anchors: Anchors; policy: CoordinatorPolicy },
): Promise<TrustedRoot | undefined> {
  const { coordinator, signer } = receipt
  const { selfAttestation, publicKey } = coordinator
  const { anchors } = context

  const verified = await run('coordinator-report', async () => {
    const { ek, ask, ark } = selfAttestation.certificates
    const report = await context.verifier.verifyReport({
      report: fromHex(selfAttestation.reportHex),
      certificates: { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) },
      at: context.at,
    })
    const { measurement = toHex(report.body.measurement) } = selfAttestation
    failIf(
      measurement !== toHex(report.body.measurement),
      'The receipt states another measurement than the coordinator’s report.',
    )
    const kind = report.root.mode === 'hardware' ? 'Genuine' : 'MOCK evidence, correct in itself'
    return [`${kind} under ${report.root.name}: ${report.productName}.`, report]
  })

  await run('coordinator-policy', () => {
    assertReportPolicy(needs(verified, 'the report is not genuine'), context.policy)
    return ['Not debuggable, no migration agent.', undefined]
  })

  await run('coordinator-key', () => {
    const { body } = needs(verified, 'the report is not genuine')
    failIf(publicKey !== signer.statement.coordinatorKey, 'The enclave was called by another coordinator’s key.')
    failIf(
      !equalBytes(toBound(coordinator), body.reportData),
      'The report is for another key or another configuration.',
    )
    return [`The report binds the key ${publicKey}.`, undefined]
  })

  await run('coordinator-measurement', () => {
    const { measurement } = needs(verified, 'the report is not genuine').body
    const hash = toHex(measurement)
    const trusted = anchors.coordinatorMeasurements
    if (!trusted?.length) throw new StepSkip(`No coordinator measurements to hold ${hash} against.`)
    failIf(!trusted.includes(hash), `The measurement ${hash} is not among those you trust.`)
    return [`The measurement ${hash} is among those you trust.`, undefined]
  })

  await run('coordinator-config', () => {
    const { configHash } = selfAttestation
    const trusted = anchors.coordinatorConfigHashes
    if (!trusted?.length) throw new StepSkip(`No coordinator configuration hashes to hold ${configHash} against.`)
    failIf(!trusted.includes(configHash), `The configuration ${configHash} is not among those you trust.`)
    return [`The configuration ${configHash} is among those you trust.`, undefined]
  })

  return verified?.root
}

/** The report data that binds the keys of a coordinator. */
function toBound({ publicKey, mlDsa65, selfAttestation }: ReceiptView['coordinator']): Uint8Array {
  const configHash = fromHex(selfAttestation.configHash)
  if (mlDsa65 === undefined) return computeSnpReportData({ publicKey: fromHex(publicKey), configHash })
  return computeSnpReportDataV2({ ed25519: fromHex(publicKey), mlDsa65: fromHex(mlDsa65), configHash })
}
