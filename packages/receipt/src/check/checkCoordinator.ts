import { assertLaunch, type TrustedRoot } from '@countersign/attestation'
import { computeSnpReportData, computeSnpReportDataV2, equalBytes, fromHex, toHex } from '@countersign/protocol'
import type { ReceiptView } from '../receiptView.ts'
import { checkMachine, type MachineContext } from './checkMachine.ts'
import { describeRoot } from './checkSigner.ts'
import { NOT_IN_MANIFEST } from './steps.ts'
import { failIf, needs, StepSkip, type Transcript } from './transcript.ts'

/** report → policy → chip → revocation → key → measurement → config: who handled the request. */
export async function checkCoordinator(
  transcript: Transcript,
  receipt: ReceiptView,
  context: Omit<MachineContext, 'certificates'> & { at: Date },
): Promise<TrustedRoot | undefined> {
  const { run } = transcript
  const { coordinator, signer } = receipt
  const { selfAttestation, publicKey } = coordinator
  const { anchors } = context

  const { ek, ask, ark } = selfAttestation.certificates
  const certificates = { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) }
  const verified = await run('coordinator-report', async () => {
    const report = await context.verifier.verifyReport({
      report: fromHex(selfAttestation.reportHex),
      certificates,
      at: context.at,
    })
    const { measurement = toHex(report.body.measurement) } = selfAttestation
    failIf(
      measurement !== toHex(report.body.measurement),
      'The receipt states another measurement than the coordinator’s report.',
    )
    return [`${describeRoot(report.root)}: ${report.productName}.`, report]
  })

  await checkMachine(transcript, verified, { ...context, certificates })

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
    const report = needs(verified, 'the report is not genuine')
    const measurement = toHex(report.body.measurement)
    const hostData = toHex(report.body.hostData)
    if (!anchors.coordinatorMeasurements?.length) {
      throw new StepSkip(`No coordinator measurements to compare ${measurement}:${hostData} with.`)
    }
    assertLaunch(report, anchors.coordinatorMeasurements)
    // A host can put the hash of more code there, so that one measurement is not one program.
    if (!anchors.coordinatorMeasurements.includes(`${measurement}:${hostData}`)) {
      throw new StepSkip(
        `The measurement ${measurement} is among the anchors, but they name no HOST_DATA to compare ${hostData} with.`,
      )
    }
    return [`The measurement ${measurement} with HOST_DATA ${hostData} is among the anchors.`, undefined]
  })

  await run('coordinator-config', () => {
    const { configHash } = selfAttestation
    const trusted = anchors.coordinatorConfigHashes
    if (!trusted?.length) throw new StepSkip(`No coordinator configuration hashes to compare ${configHash} with.`)
    failIf(!trusted.includes(configHash), `The configuration ${configHash} is not among the anchors.`, NOT_IN_MANIFEST)
    return [`The configuration ${configHash} is among the anchors.`, undefined]
  })

  return verified?.root
}

/** The report data that binds the keys of a coordinator. */
function toBound({ publicKey, mlDsa65, selfAttestation }: ReceiptView['coordinator']): Uint8Array {
  const configHash = fromHex(selfAttestation.configHash)
  if (mlDsa65 === undefined) return computeSnpReportData({ publicKey: fromHex(publicKey), configHash })
  return computeSnpReportDataV2({ ed25519: fromHex(publicKey), mlDsa65: fromHex(mlDsa65), configHash })
}
