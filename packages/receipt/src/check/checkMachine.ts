import {
  assertReportChip,
  assertReportState,
  type ReportPolicy,
  snpTcbParts,
  type VerifiedReport,
  type Verifier,
  type VerifyReportParameters,
} from '@countersign/attestation'
import { toHex } from '@countersign/protocol'
import type { Anchors } from './anchors.ts'
import { needs, StepSkip, type Transcript } from './transcript.ts'

export type CoordinatorPolicy = Omit<ReportPolicy, 'measurements' | 'reportData' | 'minimumTcb' | 'chips'>

/** AMD's revocation list (DER), and the time at which it must hold. */
export type GivenRevocations = { list: Uint8Array; at: Date }

export type MachineContext = {
  verifier: Verifier
  anchors: Anchors
  policy: CoordinatorPolicy
  certificates: VerifyReportParameters['certificates']
  revocations: GivenRevocations | undefined
}

/** policy → chip → revocation: the machine of a coordinator, whatever ran on it. */
export async function checkMachine(
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

/** The lowest of what the machine says of itself, part by part. */
function describeTcb({ tcb, product }: VerifiedReport): string {
  return snpTcbParts
    .filter((part) => part !== 'fmc' || product === 'Turin')
    .map((part) => `${part} ${Math.min(tcb.reported[part], tcb.committed[part], tcb.launch[part])}`)
    .join(', ')
}
