import { DSTACK_SECRET } from '@countersign/receipt'
import { isHardwareStep, type VerifierStep } from './steps.ts'
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

/** What each outcome of a step means, for somebody who does not know the protocol, and what to do about a failure. */
type StepWords = {
  pass: string
  fail: string
  skip?: string
  action: string
}

const DISTRUST = 'Do not rely on this receipt.'
const ASK_FOR_THE_ORIGINAL = `${DISTRUST} Get it again by its CID; if that one fails too, ask the service to explain.`
const ASK_THE_RELEASE = 'If it should be a newer release, get its measurements from the release, not from the receipt.'

const stepWords: Readonly<Record<VerifierStep['id'], StepWords>> = {
  format: {
    pass: 'The file is a receipt, written in the one way in which receipts are written.',
    fail: 'These bytes are not a receipt, or were changed after it was made.',
    action: 'Get the receipt again, unchanged.',
  },
  cid: {
    pass: 'Nobody exchanged the bytes on their way here: their hash is the name they were asked for by.',
    fail: 'These are not the bytes that the CID names: somebody changed them, or another file has its name.',
    skip: 'There is no CID to compare the bytes with, as they came from a file.',
    action: 'Get the receipt from another source.',
  },
  blocks: {
    pass: 'All parts of the receipt are the ones that it names, each by its hash.',
    fail: 'A part of the receipt is not the one that it names: somebody changed or exchanged it.',
    skip: 'A part of the receipt is missing, so that its evidence cannot be judged.',
    action: 'Get the blocks that the receipt names from another source.',
  },
  opening: {
    pass: 'What the opening shows is what this receipt commits to, to the byte.',
    fail: 'What was shown as the signed content or the signature belongs to another signature, or was changed.',
    skip: 'The receipt says that this wallet signed something. What it was, only its owner can show.',
    action: 'Ask the owner of the wallet for the opening of this signature, unchanged.',
  },
  digest: {
    pass: 'What you see belongs to the stated digest, to the byte.',
    fail: 'What the receipt or the opening shows is not what was signed.',
    skip: 'What was signed is not shown: of this kind of signature only its owner can show it.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  signature: {
    pass: 'The wallet in the receipt made the signature.',
    fail: 'The wallet in the receipt did not make this signature.',
    skip: 'The signature itself is not shown, or not together with what was signed.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  'tx-hash': {
    pass: 'Under this hash the chain knows exactly this signed transaction.',
    fail: 'The receipt names another transaction than the one that was signed.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  statement: {
    pass: 'The enclave’s statement, as the receipt has it, is about this signature.',
    fail: 'What the enclave wrote down is about another signature than the one that the receipt shows.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  log: {
    pass: 'Enough of the witnesses that the enclave’s settings name cosigned the log with this signature in it. Whether they are independent of the service, you must know.',
    fail: 'The enclave’s settings or your anchors require a log that witnesses cosign. Nothing proves that this signature is in it.',
    skip: 'No log was looked at: nothing proves that there are no other signatures.',
    action: `${DISTRUST} If you named witnesses of your own, compare their keys and how many of them you ask for.`,
  },
  'vault-policy': {
    pass: 'The rules that are shown are those that the statement names.',
    fail: 'The rules that are shown are not those that the enclave held the signature to.',
    skip: 'The rules of the vault are missing, so that nobody can tell whether they allow this.',
    action: 'Get the policy block that the receipt names from another source.',
  },
  'vault-rule': {
    pass: 'A rule of the vault allows what was signed.',
    fail: 'No rule of the vault allows what was signed, so that its enclave should have refused.',
    skip: 'What was signed is not shown, or the rules are missing: nobody can tell whether they allow it.',
    action: DISTRUST,
  },
  'vault-approvals': {
    pass: 'Each passkey that the rule asks for approved this very signature, in time.',
    fail: 'The rule asks for approvals that are missing, are for something else, or do not hold.',
    skip: 'What was signed is not shown, or the rules are missing: nobody can tell who had to approve.',
    action: DISTRUST,
  },
  inclusion: {
    pass: 'The statement is in the batch that the hardware has to vouch for.',
    fail: 'There is no way from the enclave’s note to what its hardware vouched for, so the quote may cover something else.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  collateral: {
    pass: 'Intel’s data about the processor is the same that the service used.',
    fail: 'What should be Intel’s data about the processor is something else.',
    skip: 'Intel’s data about the processor is missing, so its evidence cannot be judged.',
    action: 'Get the block that the receipt names from another source.',
  },
  quote: {
    pass: 'The hardware’s signature leads up to Intel’s own key.',
    fail: 'The quote does not verify up to Intel’s root: no Intel hardware vouches for this signature.',
    action: DISTRUST,
  },
  'report-data': {
    pass: 'The processor vouched for this very signature, not for some other.',
    fail: 'The quote does not belong to this signature.',
    action: DISTRUST,
  },
  'quote-policy': {
    pass: 'The enclave could not be looked into, and its processor was up to date.',
    fail: 'The enclave was not in a state that keeps its secrets.',
    action: 'Read the reason above; only an outdated platform can be accepted, with --tcb-status.',
  },
  platform: {
    pass: 'The enclave ran on a machine, or a kind of machine, that the anchors name.',
    fail: 'The enclave did not run on one of the machines that the anchors name.',
    skip: 'No anchor says which machines are the right ones. None need say so: this counts for nothing.',
    action: 'Ask the operator which machines the enclaves run on, and why this one is not among them.',
  },
  measurement: {
    pass: 'The program in the enclave is one that the anchors name.',
    fail: 'The enclave ran other code than the anchors name.',
    skip: 'The anchors do not say, or not for every part of it, which program is the right one.',
    action: ASK_THE_RELEASE,
  },
  config: {
    pass: 'The enclave’s settings, such as whose sign-ins it accepts, are among the anchors.',
    fail: 'The enclave ran with other settings than the anchors name: it may accept other sign-ins.',
    skip: 'No anchor says which settings are the right ones.',
    action:
      'Read the configuration (explain prints it, of version 2 from a CAR file) and ask the operator why it differs.',
  },
  entropy: {
    pass: 'The random sample was signed by its source and was used for this signature.',
    fail: 'The random sample is not signed, is forged, or belongs to another signature.',
    action: DISTRUST,
  },
  'entropy-key': {
    pass: 'The source of the random sample is one that the anchors name.',
    fail: 'The random sample comes from a source that the anchors do not name.',
    skip: 'No anchor says which source is the right one.',
    action: 'Compare the key with the one that the source publishes.',
  },
  'coordinator-report': {
    pass: 'The coordinator’s evidence leads up to AMD’s own key.',
    fail: 'The coordinator’s report does not verify up to AMD’s root: no AMD hardware vouches for it.',
    action: DISTRUST,
  },
  'coordinator-policy': {
    pass: 'The coordinator’s machine could not be looked into or moved elsewhere, and its firmware is recent enough.',
    fail: 'Its host could debug or migrate the coordinator.',
    skip: 'Nothing says how recent the coordinator’s firmware must be, so that known weaknesses may be open in it.',
    action: DISTRUST,
  },
  'coordinator-chip': {
    pass: 'The coordinator ran on a chip that the anchors list.',
    fail: 'The coordinator ran on another chip than the anchors list.',
    skip: 'No anchor lists chips, so that any machine of this kind will do.',
    action: 'Ask the operator which machines are theirs, and compare.',
  },
  'coordinator-revocation': {
    pass: 'AMD has not taken back its word for the coordinator’s hardware.',
    fail: 'The list cannot be used to tell whether AMD has taken back its word for the coordinator’s hardware.',
    skip: 'No revocation list was given, so that nobody looked whether the vendor has taken back its word for the coordinator.',
    action: 'Get the list of the coordinator’s product again from AMD (kdsintf.amd.com).',
  },
  'coordinator-key': {
    pass: 'The attested coordinator is the one that called the enclave.',
    fail: 'The attested coordinator is not the one that called the enclave.',
    action: DISTRUST,
  },
  'coordinator-measurement': {
    pass: 'The program of the coordinator, and what its host added to it, are among those that the anchors name.',
    fail: 'The coordinator ran other code than the anchors name.',
    skip: 'No anchor says which program of the coordinator is the right one, or what its host may add to it.',
    action: ASK_THE_RELEASE,
  },
  'coordinator-config': {
    pass: 'The coordinator’s settings are among the anchors.',
    fail: 'The coordinator ran with other settings than the anchors name.',
    skip: 'No anchor says which settings of the coordinator are the right ones.',
    action: 'Ask the operator why they differ.',
  },
  release: {
    pass: 'The coordinator let the signature out together with this evidence; nothing was exchanged later.',
    fail: 'The coordinator did not release this signature with this evidence; a part was exchanged later.',
    action: DISTRUST,
  },
  time: {
    pass: 'Sample, signature and event have times that can follow one another.',
    fail: 'The times in the evidence contradict each other.',
    action: DISTRUST,
  },
  'time-bound': {
    pass: 'The public chain had this receipt soon after the time of signing that it states, so it was not dated back.',
    fail: 'The time of signing is not bounded.',
    skip: 'Nothing shows that the signature was made when it says: it may be younger.',
    action: DISTRUST,
  },
  event: {
    pass: 'The public chain points to this very receipt, so it cannot be exchanged unnoticed.',
    fail: 'The public chain does not point to this receipt.',
    skip: 'The chain was not asked, or did not answer.',
    action:
      'Check the contract and the node. A fresh receipt may not be published yet: then try again in some minutes.',
  },
  transaction: {
    pass: 'The transaction was broadcast and is in a block.',
    fail: 'The chain contradicts the receipt.',
    skip: 'Not seen on the chain. A signature need not be broadcast, so this counts for nothing.',
    action: DISTRUST,
  },
  reevaluation: {
    pass: 'Judged at another time, the evidence is still good.',
    fail: 'When it was issued the evidence was as the steps above say. Judged at the time that you gave, it is not good.',
    action:
      'What was signed then stays signed; ask the operator whether the platform has been brought up to date since.',
  },
  subject: {
    pass: 'The receipt is about the signature that was asked for.',
    fail: 'This receipt is for another signature than the one you asked about.',
    action: 'The pointer to it leads to the wrong receipt. Do not take it for a proof of yours.',
  },
}

/** Where the code of a failure says more than its step. */
export const codeWords: Readonly<Record<string, Partial<Pick<StepWords, 'fail' | 'action'>>>> = {
  tcb_status_not_accepted: {
    fail: 'Intel rates the processor’s firmware or settings as not up to date.',
    action: 'If you accept that, name the status with --tcb-status.',
  },
  tcb_evaluation_too_old: {
    fail: 'Intel’s data about the platform is from before the evaluation that the manifest asks for.',
    action:
      'Known weaknesses may be missing from it. If the receipt is older than the manifest, use that of its release.',
  },
  tcb_too_old: {
    fail: 'The coordinator’s firmware is older than the manifest asks for.',
    action: 'Known weaknesses may be open in it. If the receipt is older than the manifest, use that of its release.',
  },
  platform_not_allowed: {
    fail: 'The anchors do not accept this machine or kind of processor.',
  },
  alias_check_missing: {
    fail: 'The coordinator’s firmware does not confirm that it checked its memory.',
    action: 'Whoever has the machine in hand may read what it keeps. Ask the operator for newer firmware.',
  },
  chip_not_listed: {
    fail: 'The coordinator ran on a kind of chip whose secrets software can read out, and no anchor lists this one.',
    action: 'Accept it only if you know whose chip it is: list it in a manifest or with --coordinator-chip.',
  },
  chip_not_named: {
    fail: 'Chips are listed, but the report is signed by a key of the cloud provider, which names no chip.',
  },
  certificate_revoked: {
    fail: 'The hardware vendor has revoked a certificate that this evidence rests on.',
    action: DISTRUST,
  },
  crl_expired: {
    fail: 'The vendor’s revocation list was out of date at the time it was used for: later revocations are missing from it.',
    action: 'Give one that was in date at that time.',
  },
  crl_not_yet_valid: {
    fail: 'The vendor’s revocation list is from after the time it was used for.',
    action: 'Give one that was in date at that time, and check your clock.',
  },
  crl_without_next_update: {
    fail: 'The revocation list does not say until when it holds, so that it could hide every later revocation.',
  },
  crl_signature_invalid: {
    fail: 'The revocation list is not signed by the vendor’s key that this evidence rests on: it is of another product, or forged.',
  },
  quorum_missing: {
    fail: 'Too few of the witnesses that the enclave’s settings name cosigned the log that is shown.',
  },
  inclusion_invalid: {
    fail: 'The log that is shown does not have this signature in it.',
  },
  receipt_version_unsupported: {
    fail: 'These bytes are not a receipt, or one of a version that this verifier does not know.',
    action: 'This verifier reads versions 1 and 2. A newer receipt needs a newer verifier.',
  },
  debug_enabled: { fail: 'The machine was started in debug mode: its host could read every secret.' },
  root_not_trusted: {
    fail: 'The evidence was signed under a root that is neither the vendor’s nor the simulator’s. It is forged.',
  },
  tcb_info_not_in_date: outOfDate(),
  qe_identity_not_in_date: outOfDate(),
  certificate_not_in_date: outOfDate(),
}

function outOfDate() {
  return {
    fail: 'The vendor’s data was not valid at the time it was used for, so it says nothing about that time.',
    action: 'With --at, give collateral of that very time. Without, do not rely on this receipt.',
  }
}
