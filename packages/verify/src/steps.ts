import {
  type AnyReceipt,
  isStepOf,
  nameSignature,
  requiredSteps,
  type Step,
  type StepId,
  vaultSteps,
} from '@countersign/receipt'
import type { NamedTransaction } from './loadReceipt.ts'

/** `subject` is a step of this package: whether the receipt is about the requested signature. */
export type VerifierStep = Omit<Step, 'id'> & { id: StepId | 'subject' }

export const SUBJECT_TITLE = 'The receipt is about the requested signature'

/**
 * A proof or an event can point to a genuine receipt of another transaction. Undefined if the caller named no transaction.
 */
export function checkSubject(requested: NamedTransaction | undefined, receipt: AnyReceipt): VerifierStep | undefined {
  if (requested === undefined) return undefined
  const transaction = nameSignature(receipt)
  const { txHash, chainId = transaction.chainId, walletAddress = transaction.from } = requested
  const isSame = transaction.txHash === txHash && transaction.chainId === chainId && transaction.from === walletAddress
  const step = { id: 'subject', title: SUBJECT_TITLE } as const
  if (isSame) return { ...step, status: 'pass', detail: `Both are about ${txHash}.` }
  return {
    ...step,
    status: 'fail',
    detail: `You asked for ${txHash} of ${walletAddress} on chain ${chainId}. The receipt is about ${transaction.txHash} of ${transaction.from} on chain ${transaction.chainId}.`,
  }
}

type Group = {
  title: string
  ids: readonly VerifierStep['id'][]
  /** Its steps prove nothing on simulated hardware. */
  isHardware?: boolean
}

/** In the order in which steps finish, so that the command line can print each one immediately. */
const GROUPS: readonly Group[] = [
  { title: 'The bytes', ids: ['format', 'cid', 'blocks'] },
  {
    title: 'The signature',
    ids: [
      'opening',
      'digest',
      'signature',
      'tx-hash',
      'statement',
      'subject',
      'log',
      'vault-policy',
      'vault-rule',
      'vault-approvals',
      'vault-budget',
    ],
  },
  {
    title: 'The key enclave',
    isHardware: true,
    ids: ['inclusion', 'collateral', 'quote', 'report-data', 'quote-policy', 'platform', 'measurement', 'config'],
  },
  { title: 'The random sample', isHardware: true, ids: ['entropy', 'entropy-key'] },
  {
    title: 'The coordinator',
    isHardware: true,
    ids: [
      'coordinator-report',
      'coordinator-policy',
      'coordinator-chip',
      'coordinator-revocation',
      'coordinator-key',
      'coordinator-measurement',
      'coordinator-config',
      'release',
    ],
  },
  { title: 'The public record', ids: ['event', 'transaction', 'time', 'time-bound', 'reevaluation'] },
]

export type StepGroup = { title: string; steps: readonly VerifierStep[] }

/** Groups the finished steps under six headings. */
export function groupSteps(steps: readonly VerifierStep[]): StepGroup[] {
  return GROUPS.map(({ title, ids }) => ({
    title,
    steps: ids.flatMap((id) => steps.find((step) => step.id === id) ?? []),
  }))
}

export function isHardwareStep(id: VerifierStep['id']): boolean {
  return GROUPS.some((group) => group.isHardware && group.ids.includes(id))
}

/** Steps that count for every kind of signature. A step that only some kinds need is skipped only together with one of these. */
const COUNTED: readonly VerifierStep['id'][] = [
  ...[...requiredSteps, ...vaultSteps].filter((id) => isStepOf(id, 'off-chain')),
  'blocks',
  'event',
  'time-bound',
  'reevaluation',
]

/** Whether a skipped step makes the verdict worse. */
export function isMissing({ id, status }: Pick<VerifierStep, 'id' | 'status'>): boolean {
  return status === 'skip' && COUNTED.includes(id)
}
