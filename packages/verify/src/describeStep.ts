import type { Step, StepId } from '@countersign/receipt'
import type { Verification } from './verifySubject.ts'

type Words = {
  /** What it means when the step holds. */
  pass: string
  fail: string
}

/** Each step for somebody who does not know the protocol. */
const words: Record<StepId, Words> = {
  format: {
    pass: 'The file is a receipt, written in the one way in which receipts are written.',
    fail: 'These bytes are not a receipt, or were changed after it was made.',
  },
  cid: {
    pass: 'Nobody exchanged the bytes on their way here: their hash is the name they were asked for by.',
    fail: 'These are other bytes than the ones that were asked for.',
  },
  digest: {
    pass: 'The transaction that you see is the one that was signed.',
    fail: 'The transaction in the receipt is not the one that was signed.',
  },
  signature: {
    pass: 'The wallet in the receipt made the signature.',
    fail: 'The wallet in the receipt did not make this signature.',
  },
  'tx-hash': {
    pass: 'Under this hash the chain knows exactly this signed transaction.',
    fail: 'The receipt names another transaction than the one that was signed.',
  },
  statement: {
    pass: 'What the enclave wrote down about the signing agrees with the transaction.',
    fail: 'What the enclave wrote down is about another signature.',
  },
  inclusion: {
    pass: 'The enclave’s note is one of those that its hardware vouched for together.',
    fail: 'There is no way from the enclave’s note to what its hardware vouched for.',
  },
  collateral: {
    pass: 'Intel’s data about the processor is the same that the service used.',
    fail: 'What should be Intel’s data about the processor is something else.',
  },
  quote: {
    pass: 'The hardware’s signature leads up to Intel’s own key.',
    fail: 'No Intel processor vouches for this signature: the evidence does not lead up to a root that is trusted here.',
  },
  'report-data': {
    pass: 'The processor vouched for this very signature, not for some other.',
    fail: 'The processor vouched for something else than this signature.',
  },
  'quote-policy': {
    pass: 'The enclave could not be looked into, and its processor was up to date.',
    fail: 'The enclave was not in a state that keeps its secrets.',
  },
  measurement: {
    pass: 'The program in the enclave is one that the anchors name.',
    fail: 'The enclave ran another program than those that the anchors name.',
  },
  config: {
    pass: 'The enclave’s settings, such as whose sign-ins it accepts, are among the anchors.',
    fail: 'The enclave ran with other settings than those that the anchors name.',
  },
  entropy: {
    pass: 'The random sample was signed by its source and was used for this signature.',
    fail: 'The random sample is forged, or belongs to another signature.',
  },
  'entropy-key': {
    pass: 'The source of the random sample is one that the anchors name.',
    fail: 'The random sample comes from a source that the anchors do not name.',
  },
  'coordinator-report': {
    pass: 'The coordinator’s evidence leads up to AMD’s own key.',
    fail: 'No AMD processor vouches for the coordinator: the evidence does not lead up to a root that is trusted here.',
  },
  'coordinator-policy': {
    pass: 'The coordinator’s machine could not be looked into or moved elsewhere.',
    fail: 'The coordinator’s machine could be looked into, moved, or was out of date.',
  },
  'coordinator-key': {
    pass: 'The attested coordinator is the one that called the enclave.',
    fail: 'The attested coordinator is not the one that called the enclave.',
  },
  'coordinator-measurement': {
    pass: 'The program of the coordinator is one that the anchors name.',
    fail: 'The coordinator ran another program than those that the anchors name.',
  },
  'coordinator-config': {
    pass: 'The coordinator’s settings are among the anchors.',
    fail: 'The coordinator ran with other settings than those that the anchors name.',
  },
  release: {
    pass: 'The coordinator let the signature out together with this evidence; nothing was exchanged later.',
    fail: 'The coordinator did not let the signature out with this evidence; a part was exchanged later.',
  },
  time: {
    pass: 'Sample, signature and event have times that can follow one another.',
    fail: 'The times in the evidence contradict each other.',
  },
  event: {
    pass: 'The public chain points to this very receipt, so it cannot be exchanged unnoticed.',
    fail: 'The public chain does not point to this receipt.',
  },
  transaction: {
    pass: 'The transaction was broadcast and is in a block.',
    fail: 'The chain contradicts the receipt.',
  },
  reevaluation: {
    pass: 'Judged at another time, the evidence is still good.',
    fail: 'Judged at another time, the evidence is not good.',
  },
}

const skipped: Partial<Record<StepId, string>> = {
  cid: 'There is no CID to compare the bytes with, as they came from a file.',
  collateral: 'Intel’s data about the processor is missing, so its evidence cannot be judged.',
  measurement: 'No anchor says which program is the right one.',
  config: 'No anchor says which settings are the right ones.',
  'entropy-key': 'No anchor says which source is the right one.',
  'coordinator-measurement': 'No anchor says which program of the coordinator is the right one.',
  'coordinator-config': 'No anchor says which settings of the coordinator are the right ones.',
  event: 'The chain was not asked, or did not answer.',
  transaction: 'Not seen on the chain. A signature need not be broadcast, so this counts for nothing.',
}

/** What a step's sentence depends on beside the step. */
export type StepContext = Pick<Verification, 'isMock' | 'isEventMissing' | 'receipt'> & { isOperatorNode: boolean }

/** What a step's outcome means, in a plain sentence. */
export function describeStep(step: Step, context: StepContext): string {
  const { id, status } = step
  if (id === 'event') return describeEvent(status, context)
  if (status === 'skip') return skipped[id] ?? 'Something that this step needs is missing, or failed before.'
  if (isSimulated(step, context)) return 'Correct in itself, but simulated: it says nothing about hardware.'
  const tcbStatus = context.receipt?.signer.tcbStatus
  if (id === 'quote-policy' && status === 'pass' && tcbStatus !== 'UpToDate') {
    return `The enclave could not be looked into, but its processor was not up to date: Intel’s word for it is ${tcbStatus ?? 'not known'}. It passes only because the anchors accept that.`
  }
  return words[id][status]
}

function describeEvent(status: Step['status'], { isEventMissing, isOperatorNode }: StepContext): string {
  if (status === 'skip' && !isEventMissing) return skipped.event ?? ''
  const sentence =
    status === 'skip'
      ? 'The public chain does not point to this receipt. The service does not say that it should.'
      : words.event[status]
  return isOperatorNode ? sentence.replace(/^The/, 'By the word of the operator’s node, the') : sentence
}

/** Whether a step that passed is about simulated parts: its sentence would be read as one about hardware. */
export function isSimulated({ id, status, detail }: Step, { isMock }: Pick<StepContext, 'isMock'>): boolean {
  if (status !== 'pass') return false
  return detail.includes('MOCK') || (isMock && stepGroups.some((group) => group.isHardware && group.ids.includes(id)))
}

export type StepGroup = {
  title: string
  ids: readonly StepId[]
  /** Its steps are worth nothing on simulated hardware. */
  isHardware?: boolean
}

export const stepGroups: readonly StepGroup[] = [
  { title: 'The bytes', ids: ['format', 'cid'] },
  { title: 'The transaction', ids: ['digest', 'signature', 'tx-hash', 'statement'] },
  {
    title: 'The key enclave',
    isHardware: true,
    ids: ['inclusion', 'collateral', 'quote', 'report-data', 'quote-policy', 'measurement', 'config'],
  },
  { title: 'The random sample', isHardware: true, ids: ['entropy', 'entropy-key'] },
  {
    title: 'The coordinator',
    isHardware: true,
    ids: [
      'coordinator-report',
      'coordinator-policy',
      'coordinator-key',
      'coordinator-measurement',
      'coordinator-config',
      'release',
    ],
  },
  { title: 'The public record', ids: ['event', 'transaction', 'time', 'reevaluation'] },
]
