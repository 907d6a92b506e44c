import {
  assertLaunch,
  assertReportChip,
  assertReportState,
  type ReportPolicy,
  snpTcbParts,
  type TrustedRoot,
  type VerifiedReport,
  type Verifier,
  type VerifyReportParameters,
} from '@countersign/attestation'
import { computeSnpReportData, computeSnpReportDataV2, equalBytes, fromHex, toHex } from '@countersign/protocol'
import type { ReceiptView } from '../receiptView.ts'
import type { Anchors } from './anchors.ts'
import { describeRoot } from './checkSigner.ts'
import { failIf, NOT_IN_MANIFEST, needs, StepSkip, type Transcript } from './steps.ts'

/** report → policy → chip → revocation → key → measurement → config: the coordinator that handled the request. */
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
    failIf(publicKey !== signer.statement.coordinatorKey, 'Another coordinator’s key called the enclave.')
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
    // A host can put the hash of more code there, so the same measurement can belong to different programs.
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

/** The report data for a coordinator's keys. */
function toBound({ publicKey, mlDsa65, selfAttestation }: ReceiptView['coordinator']): Uint8Array {
  const configHash = fromHex(selfAttestation.configHash)
  if (mlDsa65 === undefined) return computeSnpReportData({ publicKey: fromHex(publicKey), configHash })
  return computeSnpReportDataV2({ ed25519: fromHex(publicKey), mlDsa65: fromHex(mlDsa65), configHash })
}

export type CoordinatorPolicy = Omit<ReportPolicy, 'measurements' | 'reportData' | 'minimumTcb' | 'chips'>

/** AMD's revocation list (DER), and the time at which it must be valid. */
export type GivenRevocations = { list: Uint8Array; at: Date }

export type MachineContext = {
  verifier: Verifier
  anchors: Anchors
  policy: CoordinatorPolicy
  certificates: VerifyReportParameters['certificates']
  revocations: GivenRevocations | undefined
}

/** policy → chip → revocation: the coordinator's machine, independent of its code. */
async function checkMachine(
  { run }: Transcript,
  verified: VerifiedReport | undefined,
  { verifier, anchors, policy, certificates, revocations }: MachineContext,
): Promise<void> {
  await run('coordinator-policy', () => {
    const report = needs(verified, 'the report is not genuine')
    const { coordinatorMinimumTcb: minimumTcb } = anchors
    assertReportState(report, { ...policy, ...(minimumTcb === undefined ? {} : { minimumTcb }) })
    const hasFloor = Object.values(minimumTcb?.[report.product] ?? {}).some((level) => level > 0)
    if (!hasFloor) {
      throw new StepSkip(`No minimum patch level to compare ${report.product} ${describeTcb(report)} with.`)
    }
    return [`Not debuggable, no migration agent, lowest patch level ${describeTcb(report)}.`, undefined]
  })

  await run('coordinator-chip', () => {
    const report = needs(verified, 'the report is not genuine')
    const chips = anchors.coordinatorChips?.length ? anchors.coordinatorChips : undefined
    assertReportChip(report, chips)
    const chip = toHex(report.body.chipId)
    if (chips === undefined) throw new StepSkip(`No chips to compare ${chip} with.`)
    return [`The chip ${chip} is among the anchors.`, undefined]
  })

  await run('coordinator-revocation', async () => {
    needs(verified, 'the report is not genuine')
    const { list, at } = needs(revocations, 'AMD’s revocation list was not given')
    const { thisUpdate, revoked } = await verifier.verifyRevocations({ certificates, list, at })
    const entries = revoked === 1 ? 'one entry' : `${revoked} entries`
    return [`AMD’s list of ${thisUpdate.toISOString()} (${entries}) names none of the certificates.`, undefined]
  })
}

/** The lowest level that the machine states for each part. */
function describeTcb({ tcb, product }: VerifiedReport): string {
  return snpTcbParts
    .filter((part) => part !== 'fmc' || product === 'Turin')
    .map((part) => `${part} ${Math.min(tcb.reported[part], tcb.committed[part], tcb.launch[part])}`)
    .join(', ')
}
