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

/** `subject` is the verifier's own: whether the receipt is about the signature that the reader asked about. */
export type VerifierStep = Omit<Step, 'id'> & { id: StepId | 'subject' }

export const SUBJECT_TITLE = 'The receipt is about the signature that was asked for'

/**
 * A pointer may lead to a genuine receipt of something else: an event under one transaction's hash to the receipt of
 * another, or a proof page that shows one and links the other. Undefined where no transaction was named.
 */
export function checkSubject(asked: NamedTransaction | undefined, receipt: AnyReceipt): VerifierStep | undefined {
  if (asked === undefined) return undefined
  const transaction = nameSignature(receipt)
  const { txHash, chainId = transaction.chainId, walletAddress = transaction.from } = asked
  const isSame = transaction.txHash === txHash && transaction.chainId === chainId && transaction.from === walletAddress
  const step = { id: 'subject', title: SUBJECT_TITLE } as const
  if (isSame) return { ...step, status: 'pass', detail: `Both are about ${txHash}.` }
  return {
    ...step,
    status: 'fail',
    detail: `Asked for was ${txHash} of ${walletAddress} on chain ${chainId}; the receipt is about ${transaction.txHash} of ${transaction.from} on chain ${transaction.chainId}.`,
  }
}

type Group = {
  title: string
  ids: readonly VerifierStep['id'][]
  /** Its steps are worth nothing on simulated hardware. */
  isHardware?: boolean
}

/** In the order in which steps finish, so that the command line can print each at once. */
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

/** Steps under the six headings that page and command line have, with those that are there so far. */
export function groupSteps(steps: readonly VerifierStep[]): StepGroup[] {
  return GROUPS.map(({ title, ids }) => ({
    title,
    steps: ids.flatMap((id) => steps.find((step) => step.id === id) ?? []),
  }))
}

/** Whether a step is about hardware. */
export function isHardwareStep(id: VerifierStep['id']): boolean {
  return GROUPS.some((group) => group.isHardware && group.ids.includes(id))
}

/**
 * What every kind of signature must pass, once it is there. A step that only some kinds must pass is skipped only where the kind need
 * not, or together with one of these.
 */
const COUNTED: readonly VerifierStep['id'][] = [
  ...[...requiredSteps, ...vaultSteps].filter((id) => isStepOf(id, 'off-chain')),
  'blocks',
  'event',
  'time-bound',
  'reevaluation',
]

/** Whether a step was not judged, and the verdict is the worse for it. */
export function isMissing({ id, status }: Pick<VerifierStep, 'id' | 'status'>): boolean {
  return status === 'skip' && COUNTED.includes(id)
}
