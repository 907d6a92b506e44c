import { isMissing, isSimulated, type VerifierStep } from '@countersign/verify'
import type { Mark } from './StatusMark.tsx'

export function toMark(step: VerifierStep, { isMock }: { isMock: boolean }): Mark {
  return isSimulated(step, { isMock }) ? 'mock' : step.status
}

/** The mark of a group: one step that passed does not hide that another, which counts, was not judged. Undefined before the first step. */
export function findWorst(steps: readonly VerifierStep[], { isMock }: { isMock: boolean }): Mark | undefined {
  const marks = steps.map((step) => toMark(step, { isMock }))
  const order: Mark[] = ['fail', 'mock', ...(steps.some(isMissing) ? [] : ['pass' as const]), 'skip']
  return order.find((mark) => marks.includes(mark))
}
