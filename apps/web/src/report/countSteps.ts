import type { VerifierStep } from '@countersign/verify'

export function countSteps(steps: readonly VerifierStep[]): string {
  const number = (status: VerifierStep['status']) => steps.filter((step) => step.status === status).length
  return `${steps.length} steps: ${number('pass')} passed, ${number('fail')} failed, ${number('skip')} not judged.`
}
