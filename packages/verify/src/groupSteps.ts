import type { VerifierStep } from './checkSubject.ts'

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
