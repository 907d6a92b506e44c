import { isStepOf, requiredSteps, vaultSteps } from '@countersign/receipt'
import type { VerifierStep } from './checkSubject.ts'

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
