import { type StepId, stepTitles, vaultSteps } from '@countersign/receipt'
import type { VerifierStep } from '../checkSubject.ts'
import type { Claim } from '../compareClaims.ts'
import { toManifest } from '../issues.fake.ts'
import { createFakeNetwork, type FakeNetwork } from '../network.fake.ts'
import type { Manifest } from '../parseManifest.ts'
import type { Outcome } from '../verify.ts'
import { honest, manifest } from './honest.fake.ts'
import { linkRows } from './linkRows.fake.ts'
import { logRows } from './logRows.fake.ts'
import { manifestRows } from './manifestRows.fake.ts'
import { networkRows } from './networkRows.fake.ts'
import { receiptRows } from './receiptRows.fake.ts'
import type { Expected, SubjectRow } from './subjectRow.fake.ts'
import { timeRows } from './timeRows.fake.ts'
import { vaultRows } from './vaultRows.fake.ts'
import { versionTwoRows } from './versionTwoRows.fake.ts'

export const subjects: readonly SubjectRow[] = [
  ...receiptRows,
  ...manifestRows,
  ...networkRows,
  ...linkRows,
  ...timeRows,
  ...versionTwoRows,
  ...vaultRows,
  ...logRows,
]

/** The network of a row. */
export function createRowNetwork({ spoil, issue = honest }: SubjectRow): FakeNetwork {
  const network = createFakeNetwork(issue)
  spoil?.(network)
  return network
}

export function toRowManifest({ manifest: own, issue }: SubjectRow): Manifest {
  return own ?? (issue === undefined ? manifest : toManifest(issue))
}

/** What must come of a row, step by step, as `toFound` writes what did. */
export function toWanted(row: SubjectRow, expected: Expected) {
  if ('error' in expected) return expected
  const { subject, at } = row
  const { verdict, conclusion, fail = {}, lies = [] } = expected
  const unlisted: VerifierStep['id'][] = toRowManifest(row).enclave.platforms === undefined ? ['platform'] : []
  const skip = [...(expected.skip ?? []), ...unlisted]
  const isPointer = typeof subject === 'string' && !/bafkrei[a-z2-7]{52}(?:\.ipfs\.|$)/.test(subject)
  // Without its blocks, nothing after the log and the steps of a vault can be judged.
  const isCut = 'blocks' in fail || skip.includes('blocks')
  const ids: VerifierStep['id'][] =
    'format' in fail
      ? ['format', 'cid']
      : [
          ...(Object.keys(stepTitles) as StepId[])
            .filter((id) => id !== 'reevaluation' || at !== undefined)
            .filter((id) => isStepOfRow(id, row))
            .filter((_, index, all) => !isCut || index <= all.findLastIndex(isOfBlock)),
          ...(isPointer ? (['subject'] as const) : []),
        ]
  const steps = ids.map((id) => {
    if (id in fail) return `${id} fail ${fail[id]}`.trim()
    if (id === 'time-bound' && ('event' in fail || skip.includes('event'))) return 'time-bound skip'
    const isSkipped =
      skip.includes(id) ||
      (id === 'log' && (!isLogged(row) || isCut)) ||
      (id === 'transaction' && kindOf(row) !== 'transaction') ||
      (id === 'coordinator-revocation' && row.revocations === undefined)
    return `${id} ${isSkipped ? 'skip' : 'pass'}`
  })
  return { verdict, conclusion, steps: steps.toSorted(), lies }
}

function kindOf({ issue }: SubjectRow) {
  return issue !== undefined && 'kind' in issue.receipt ? issue.receipt.kind : 'transaction'
}

function isStepOfRow(id: StepId, row: SubjectRow): boolean {
  if (id === 'blocks') return row.issue !== undefined
  if (id === 'opening') return kindOf(row) === 'off-chain' || row.opening !== undefined
  if (vaultSteps.includes(id)) return isOfVault(row) && (id === 'vault-policy' || kindOf(row) !== 'address')
  if (id === 'digest' || id === 'signature') return kindOf(row) !== 'address'
  return id !== 'tx-hash' || kindOf(row) === 'transaction'
}

/** Of the receipt itself, before its evidence. */
function isOfBlock(id: StepId): boolean {
  return id === 'log' || vaultSteps.includes(id)
}

function isLogged({ issue }: SubjectRow): boolean {
  return issue !== undefined && 'kind' in issue.receipt && issue.receipt.log !== undefined
}

function isOfVault({ issue }: SubjectRow): boolean {
  return issue !== undefined && 'kind' in issue.receipt && issue.receipt.signer.statement.policy !== null
}

export type Found = Pick<Outcome, 'verdict' | 'conclusion' | 'steps'> & { lies: readonly Pick<Claim, 'member'>[] }

export function toFound({ verdict, conclusion, steps, lies }: Found) {
  const lines = steps.map(({ id, status, code = '' }) => `${id} ${status} ${code}`.trim())
  return { verdict, conclusion, steps: lines.toSorted(), lies: lies.map(({ member }) => member) }
}
