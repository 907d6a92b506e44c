import { DSTACK_SECRET } from '@countersign/receipt'
import { isHardwareStep, type VerifierStep } from './steps.ts'
import { codeWords, type StepWords, stepWords } from './stepWords.ts'
import type { Outcome } from './verify.ts'

/** What a step's sentence depends on beside the step. */
export type StepContext = Pick<Outcome, 'isMock' | 'isEventMissing' | 'view'> & {
  /** Whether the chain was asked through the node that the operator names. */
  isOperatorNode: boolean
}

/** What a failure means and what to do about it. */
export function adviseOn({ id, code }: Pick<VerifierStep, 'id' | 'code'>): { meaning: string; action: string } {
  const words: StepWords = { ...stepWords[id], ...(code === undefined ? {} : codeWords[code]) }
  return { meaning: words.fail, action: words.action }
}

/** What a step's outcome means, in a plain sentence. */
export function describeStep(step: VerifierStep, context: StepContext): string {
  const { id, status } = step
  if (id === 'event') return describeEvent(status, context)
  // The time of a block is the word of the node that was asked.
  if (id === 'time-bound' && status === 'pass') return toNodesWord(stepWords[id].pass, context)
  if (status === 'skip') return stepWords[id].skip ?? 'Something that this step needs is missing, or failed before.'
  if (isSimulated(step, context)) return 'Correct in itself, but simulated: it says nothing about hardware.'
  const tcbStatus = context.view?.signer.tcbStatus
  if (id === 'quote-policy' && status === 'pass' && tcbStatus !== undefined && tcbStatus !== 'UpToDate') {
    return `The enclave could not be looked into, but its processor was not up to date: Intel’s word for it is ${tcbStatus}. It passes only because the anchors accept that.`
  }
  if (status === 'fail') return adviseOn(step).meaning
  const isDstack = id === 'measurement' && context.view?.signer.config.rootSecret === 'dstack'
  return isDstack ? `${stepWords[id].pass} ${DSTACK_SECRET}` : stepWords[id].pass
}

function describeEvent(status: VerifierStep['status'], context: StepContext): string {
  if (status === 'skip' && !context.isEventMissing) return stepWords.event.skip ?? ''
  const sentence =
    status === 'skip'
      ? 'The public chain does not point to this receipt. The service does not say that it should.'
      : stepWords.event[status]
  return toNodesWord(sentence, context)
}

function toNodesWord(sentence: string, { isOperatorNode }: StepContext): string {
  return isOperatorNode ? sentence.replace(/^The/, 'By the word of the operator’s node, the') : sentence
}

/** Whether a step that passed is about simulated parts: its sentence would be read as one about hardware. */
export function isSimulated({ id, status, detail }: VerifierStep, { isMock }: { isMock: boolean }): boolean {
  if (status !== 'pass') return false
  return isMockStep({ detail }) || (isMock && isHardwareStep(id))
}

/** Whether the step itself found simulated evidence. */
export function isMockStep({ detail }: Pick<VerifierStep, 'detail'>): boolean {
  return detail.includes('MOCK')
}
