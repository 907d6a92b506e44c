import { readSnpMeasurement, type TrustedRoot } from '@countersign/attestation'
import { computeSnpReportData, equalBytes, fromHex, hashLeaf, toHex, verifyEd25519 } from '@countersign/protocol'
import { hashPart, toReceiptRelease } from './assemble.ts'
import { checkMachine, type MachineContext } from './checkMachine.ts'
import { toCidHash } from './cid.ts'
import type { AttestationReceiptV1 } from './schema.ts'
import { failIf, needs, StepSkip, type Transcript } from './transcript.ts'

/** report → policy → chip → revocation → key → measurement → config → release: who handled the request. */
export async function checkCoordinator(
  transcript: Transcript,
  receipt: AttestationReceiptV1,
  context: Omit<MachineContext, 'certificates'> & { at: Date },
): Promise<TrustedRoot | undefined> {
  const { run } = transcript
  const { coordinator, signer, entropy } = receipt
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
    failIf(
      selfAttestation.measurement !== toHex(report.body.measurement),
      'The receipt states another measurement than the coordinator’s report.',
    )
    const kind = report.root.mode === 'hardware' ? 'Genuine' : 'MOCK evidence, correct in itself'
    return [`${kind} under ${report.root.name}: ${report.productName}.`, report]
  })

  await checkMachine(transcript, verified, { ...context, certificates })

  await run('coordinator-key', () => {
    const { body } = needs(verified, 'the report is not genuine')
    failIf(publicKey !== signer.statement.coordinatorKey, 'The enclave was called by another coordinator’s key.')
    const bound = computeSnpReportData({
      publicKey: fromHex(publicKey),
      configHash: fromHex(selfAttestation.configHash),
    })
    failIf(!equalBytes(bound, body.reportData), 'The report is for another key or another configuration.')
    return [`The report binds the key ${publicKey}.`, undefined]
  })

  await run('coordinator-measurement', () => {
    const { body } = needs(verified, 'the report is not genuine')
    const measurement = toHex(body.measurement)
    const hostData = toHex(body.hostData)
    if (!anchors.coordinatorMeasurements?.length) {
      throw new StepSkip(`No coordinator measurements to hold ${measurement}:${hostData} against.`)
    }
    const trusted = anchors.coordinatorMeasurements.map(readSnpMeasurement)
    const sameMeasurement = trusted.filter((code) => code?.measurement === measurement)
    failIf(sameMeasurement.length === 0, `The measurement ${measurement} is not among those you trust.`)
    const isKnown = sameMeasurement.some((code) => code?.hostData === hostData)
    // A host can put the hash of more code there, so that one measurement is not one program.
    if (!isKnown && sameMeasurement.some((code) => code?.hostData === undefined)) {
      throw new StepSkip(
        `The measurement ${measurement} is among those you trust, but HOST_DATA to hold ${hostData} against was not given.`,
      )
    }
    failIf(!isKnown, `HOST_DATA ${hostData} is not among those you trust with the measurement ${measurement}.`)
    return [`The measurement ${measurement} with HOST_DATA ${hostData} is among those you trust.`, undefined]
  })

  await run('coordinator-config', () => {
    const { configHash } = selfAttestation
    const trusted = anchors.coordinatorConfigHashes
    if (!trusted?.length) throw new StepSkip(`No coordinator configuration hashes to hold ${configHash} against.`)
    failIf(!trusted.includes(configHash), `The configuration ${configHash} is not among those you trust.`)
    return [`The configuration ${configHash} is among those you trust.`, undefined]
  })

  await run('release', () => {
    const message = toReceiptRelease({
      leaf: hashLeaf(signer.statement),
      collateralHash: fromHex(needs(toCidHash(signer.collateral), 'the receipt names no collateral')),
      selfAttestationHash: hashPart(selfAttestation),
      witness: entropy,
    })
    const isSigned = verifyEd25519(fromHex(publicKey), fromHex(coordinator.release), message)
    failIf(!isSigned, 'The coordinator did not release this statement with this evidence.')
    return ['Its key signed for the statement, the collateral, its own report and the sample.', undefined]
  })

  return verified?.root
}
