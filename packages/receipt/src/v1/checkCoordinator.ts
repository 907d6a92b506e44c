import { assertReportPolicy, type ReportPolicy, type TrustedRoot, type Verifier } from '@countersign/attestation'
import { computeSnpReportData, equalBytes, fromHex, hashLeaf, toHex, verifyEd25519 } from '@countersign/protocol'
import type { Anchors } from './anchors.ts'
import { hashPart, toReceiptRelease } from './assemble.ts'
import { toCidHash } from './cid.ts'
import type { AttestationReceiptV1 } from './schema.ts'
import { failIf, needs, StepSkip, type Transcript } from './transcript.ts'

export type CoordinatorPolicy = Omit<ReportPolicy, 'measurements' | 'reportData'>

/** report → policy → key → measurement → config → release: who handled the request. */
export async function checkCoordinator(
  { run }: Transcript,
  receipt: AttestationReceiptV1,
  context: { verifier: Verifier; at: Date; anchors: Anchors; policy: CoordinatorPolicy },
): Promise<TrustedRoot | undefined> {
  const { coordinator, signer, entropy } = receipt
  const { selfAttestation, publicKey } = coordinator
  const { anchors } = context

  const verified = await run('coordinator-report', async () => {
    const { ek, ask, ark } = selfAttestation.certificates
    const report = await context.verifier.verifyReport({
      report: fromHex(selfAttestation.reportHex),
      certificates: { ek: fromHex(ek), ask: fromHex(ask), ark: fromHex(ark) },
      at: context.at,
    })
    failIf(
      selfAttestation.measurement !== toHex(report.body.measurement),
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
    const bound = computeSnpReportData({
      publicKey: fromHex(publicKey),
      configHash: fromHex(selfAttestation.configHash),
    })
    failIf(!equalBytes(bound, body.reportData), 'The report is for another key or another configuration.')
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
