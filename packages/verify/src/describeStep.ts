import { DSTACK_SECRET } from '@countersign/receipt'
import { describeOwner } from './describeSigned.ts'
import { isHardwareStep, type VerifierStep } from './steps.ts'
import type { Outcome } from './verify.ts'

/** The context of a step's sentence. */
export type StepContext = Pick<Outcome, 'isMock' | 'isEventMissing' | 'view'> & {
  /** If step `event` is about a checkpoint. */
  anchor?: Outcome['anchor']
  /** Of an address, if an opening shows it. */
  owner?: Outcome['owner']
  /** Whether the chain data came from the operator's node. */
  isOperatorNode: boolean
}

export function adviseOn(
  { id, code }: Pick<VerifierStep, 'id' | 'code'>,
  { anchor }: Pick<StepContext, 'anchor'> = {},
): { meaning: string; action: string } {
  const isCheckpoint = id === 'event' && anchor !== undefined
  const words: StepWords = isCheckpoint
    ? checkpointWords
    : { ...stepWords[id], ...(code === undefined ? {} : codeWords[code]) }
  return { meaning: words.fail, action: words.action }
}

export function describeStep(step: VerifierStep, context: StepContext): string {
  const { id, status } = step
  if (id === 'event') return describeEvent(status, context)
  if (id === 'opening' && context.view?.kind === 'address') return describeOwnerStep(step, context)
  // The verifier trusts the node for block times.
  if (id === 'time-bound' && status === 'pass') return nameSource(stepWords[id].pass, context)
  if (status === 'skip') return stepWords[id].skip ?? 'This step needs the result of a step that failed or was skipped.'
  if (isSimulated(step, context)) return 'Consistent, but simulated: it says nothing about hardware.'
  const tcbStatus = context.view?.signer.tcbStatus
  if (id === 'quote-policy' && status === 'pass' && tcbStatus !== undefined && tcbStatus !== 'UpToDate') {
    return `Debug mode was off, but the enclave’s processor was not up to date: Intel rates it ${tcbStatus}. It passes only because the anchors accept that.`
  }
  if (status === 'fail') return adviseOn(step).meaning
  const isDstack = id === 'measurement' && context.view?.signer.config.rootSecret === 'dstack'
  return isDstack ? `${stepWords[id].pass} ${DSTACK_SECRET}` : stepWords[id].pass
}

function describeOwnerStep(step: VerifierStep, { owner, view }: StepContext): string {
  if (step.status === 'skip') return 'Owner: sealed. Only the owner can show whose address this is, with an opening.'
  if (step.status === 'fail') return adviseOn(step).meaning
  const matches = 'The opening matches the owner in this receipt'
  return owner === undefined || view === undefined
    ? `${matches}.`
    : `${matches}: ${describeOwner(view.transaction.from, owner)}`
}

function describeEvent(status: VerifierStep['status'], context: StepContext): string {
  const words = context.anchor === undefined ? stepWords.event : checkpointWords
  if (status === 'skip' && !context.isEventMissing) return words.skip ?? ''
  const missing = context.anchor
    ? 'The public chain has no final checkpoint with this signature yet.'
    : 'The public chain does not point to this receipt. The service hasn’t reported it as published.'
  const sentence = status === 'skip' ? missing : words[status]
  return nameSource(sentence, context)
}

function nameSource(sentence: string, { isOperatorNode }: StepContext): string {
  return isOperatorNode ? sentence.replace(/^The/, 'According to the operator’s node, the') : sentence
}

/** Whether a passed step is about simulated evidence. Its usual sentence would claim real hardware. */
export function isSimulated({ id, status, detail }: VerifierStep, { isMock }: { isMock: boolean }): boolean {
  if (status !== 'pass') return false
  return isMockStep({ detail }) || (isMock && isHardwareStep(id))
}

/** Whether the step itself found simulated evidence. */
export function isMockStep({ detail }: Pick<VerifierStep, 'detail'>): boolean {
  return detail.includes('MOCK')
}

/** The words for each outcome, for readers who don't know the protocol, and advice for failures. */
type StepWords = {
  pass: string
  fail: string
  skip?: string
  action: string
}

const DISTRUST = 'Don’t rely on this receipt.'
const REFETCH = `${DISTRUST} Download it again by its CID. If that fails too, ask the service.`
const CHECK_RELEASE = 'If it should be a newer release, get its measurements from the release, not from the receipt.'

const stepWords: Readonly<Record<VerifierStep['id'], StepWords>> = {
  format: {
    pass: 'The file is a receipt in its canonical form.',
    fail: 'These bytes are not a receipt, or someone changed them.',
    action: 'Download the original receipt.',
  },
  cid: {
    pass: 'The bytes match their CID, so they are unchanged.',
    fail: 'The bytes don’t match the CID: someone changed them, or the file has a wrong name.',
    skip: 'The receipt came from a file, so there is no CID to compare it with.',
    action: 'Get the receipt from another source.',
  },
  blocks: {
    pass: 'Every block of the receipt matches its CID.',
    fail: 'A block of the receipt doesn’t match its CID: someone changed or replaced it.',
    skip: 'A block of the receipt is missing, so its evidence can’t be checked.',
    action: 'Get the missing blocks from another source.',
  },
  opening: {
    pass: 'The opening matches the commitment in this receipt.',
    fail: 'The opening belongs to another signature, owner or address, or someone changed it.',
    skip: 'The receipt says that this wallet signed something. Only its owner can show the content.',
    action: 'Ask the owner of the wallet for the original opening of this signature or address.',
  },
  digest: {
    pass: 'The content matches the stated digest.',
    fail: 'The content in the receipt or the opening is not what was signed.',
    skip: 'The signed content is not shown. Only the wallet’s owner can show it.',
    action: REFETCH,
  },
  signature: {
    pass: 'The wallet in the receipt made the signature.',
    fail: 'The wallet in the receipt did not make this signature.',
    skip: 'The signature is not shown, or not together with its content.',
    action: REFETCH,
  },
  'tx-hash': {
    pass: 'The signed transaction has the stated hash.',
    fail: 'The receipt names another transaction than the signed one.',
    action: REFETCH,
  },
  statement: {
    pass: 'The enclave’s statement in the receipt is about this signature.',
    fail: 'The enclave’s statement is about another signature.',
    action: REFETCH,
  },
  log: {
    pass: 'This signature is in a log that enough witnesses cosigned. The enclave’s settings name the witnesses. You must decide whether they are independent of the service.',
    fail: 'The enclave’s settings or your anchors require a log that witnesses cosign. Nothing proves that this signature is in it.',
    skip: 'No log was checked, so there may be other signatures.',
    action: `${DISTRUST} If you named witnesses, check their keys and your quorum.`,
  },
  'vault-policy': {
    pass: 'The rules shown are the ones that the statement names.',
    fail: 'The rules shown are not the ones that the enclave applied.',
    skip: 'The rules of the vault are missing, so nothing shows whether they allow this.',
    action: 'Get the policy block of the receipt from another source.',
  },
  'vault-rule': {
    pass: 'A rule of the vault allows this signature.',
    fail: 'No rule of the vault allows this signature. The enclave should have refused it.',
    skip: 'The content or the rules are missing, so nothing shows whether the rules allow it.',
    action: DISTRUST,
  },
  'vault-approvals': {
    pass: 'Everyone whose approval the rule requires approved this signature in time.',
    fail: 'Required approvals are missing, invalid, or for something else.',
    skip: 'The content or the rules are missing, so the required approvals are unknown.',
    action: DISTRUST,
  },
  'vault-budget': {
    pass: 'The enclave counted this payment, and the vault’s budgets allowed it at that time.',
    fail: 'The enclave counted this payment wrongly, or above a budget of the vault.',
    skip: 'The content, the rules or the log are missing, so nothing shows how the payment was counted.',
    action: DISTRUST,
  },
  inclusion: {
    pass: 'The statement is in the batch.',
    fail: 'The statement is not in the batch, so the quote may cover something else.',
    action: REFETCH,
  },
  collateral: {
    pass: 'Intel’s data about the processor is the data that the service used.',
    fail: 'The file is not Intel’s data about the processor that the receipt names.',
    skip: 'Intel’s data about the processor is missing, so the quote can’t be checked.',
    action: 'Get the collateral block of the receipt from another source.',
  },
  quote: {
    pass: 'The quote’s signature chain ends at Intel’s root key.',
    fail: 'The quote’s signature chain doesn’t end at Intel’s root key, so no Intel hardware vouches for this signature.',
    action: DISTRUST,
  },
  'report-data': {
    pass: 'The processor’s quote covers this signature.',
    fail: 'The quote covers another signature.',
    action: DISTRUST,
  },
  'quote-policy': {
    pass: 'Debug mode was off, and the enclave’s processor was up to date.',
    fail: 'The enclave was not in a state that protects its secrets.',
    action: 'Read the reason above. Only an outdated platform can be accepted, with --tcb-status.',
  },
  platform: {
    pass: 'The enclave ran on a machine, or a kind of machine, that the anchors list.',
    fail: 'The enclave ran on a machine that the anchors don’t list.',
    skip: 'The anchors list no machines. This doesn’t affect the verdict.',
    action: 'Ask the operator which machines run the enclaves.',
  },
  measurement: {
    pass: 'The enclave ran code that the anchors list.',
    fail: 'The enclave ran code that the anchors don’t list.',
    skip: 'The anchors don’t name the enclave’s code, or only a part of it.',
    action: CHECK_RELEASE,
  },
  config: {
    pass: 'The anchors list the enclave’s settings, such as its accepted sign-ins.',
    fail: 'The enclave ran with settings that the anchors don’t list. It may accept other sign-ins.',
    skip: 'The anchors name no settings of the enclave.',
    action:
      'Read the settings (explain prints them, for version 2 from a CAR file) and ask the operator why they differ.',
  },
  entropy: {
    pass: 'The entropy source signed the random sample, and the enclave used it for this signature.',
    fail: 'The random sample is unsigned, forged, or belongs to another signature.',
    action: DISTRUST,
  },
  'entropy-key': {
    pass: 'The anchors list the source of the random sample.',
    fail: 'The random sample comes from a source that the anchors don’t list.',
    skip: 'The anchors name no entropy source.',
    action: 'Compare the key with the one that the source publishes.',
  },
  'coordinator-report': {
    pass: 'The signature chain of the coordinator’s report ends at AMD’s root key.',
    fail: 'The signature chain of the coordinator’s report doesn’t end at AMD’s root key, so no AMD hardware vouches for it.',
    action: DISTRUST,
  },
  'coordinator-policy': {
    pass: 'The coordinator’s host could neither debug nor migrate it, and its firmware is recent enough.',
    fail: 'The coordinator’s host could debug or migrate it.',
    skip: 'The anchors name no minimum firmware version for the coordinator, so known weaknesses may be open.',
    action: DISTRUST,
  },
  'coordinator-chip': {
    pass: 'The coordinator ran on a chip that the anchors list.',
    fail: 'The coordinator ran on a chip that the anchors don’t list.',
    skip: 'The anchors list no chips, so any machine of this kind is accepted.',
    action: 'Ask the operator which machines run the coordinator.',
  },
  'coordinator-revocation': {
    pass: 'AMD has not revoked the coordinator’s certificates.',
    fail: 'The revocation list can’t show whether AMD has revoked the coordinator’s certificates.',
    skip: 'There is no revocation list, so a revoked certificate of the coordinator would go unnoticed.',
    action: 'Download the list for the coordinator’s product from AMD (kdsintf.amd.com).',
  },
  'coordinator-key': {
    pass: 'The attested coordinator called the enclave.',
    fail: 'Another coordinator than the attested one called the enclave.',
    action: DISTRUST,
  },
  'coordinator-measurement': {
    pass: 'The anchors list the coordinator’s code and host data.',
    fail: 'The coordinator ran code that the anchors don’t list.',
    skip: 'The anchors don’t name the coordinator’s code, or leave out its host data.',
    action: CHECK_RELEASE,
  },
  'coordinator-config': {
    pass: 'The anchors list the coordinator’s settings.',
    fail: 'The coordinator ran with settings that the anchors don’t list.',
    skip: 'The anchors name no settings of the coordinator.',
    action: 'Ask the operator why they differ.',
  },
  release: {
    pass: 'The coordinator released the signature with exactly this evidence.',
    fail: 'The coordinator did not release this signature with this evidence. Someone replaced a part later.',
    action: DISTRUST,
  },
  time: {
    pass: 'The times of sample, signature and publication are consistent.',
    fail: 'The times in the evidence contradict each other.',
    action: DISTRUST,
  },
  'time-bound': {
    pass: 'The public chain had this receipt soon after the stated signing time, so the receipt isn’t back-dated.',
    fail: 'Nothing confirms the signing time.',
    skip: 'Nothing confirms the stated signing time. The signature may be newer.',
    action: DISTRUST,
  },
  event: {
    pass: 'The public chain points to this receipt, so replacing it would be noticed.',
    fail: 'The public chain does not point to this receipt.',
    skip: 'The chain was not asked, or did not answer.',
    action: 'Check the contract and the node. If the receipt is new, try again in a few minutes.',
  },
  transaction: {
    pass: 'The transaction is in a block.',
    fail: 'The chain contradicts the receipt.',
    skip: 'The transaction is not on the chain. This doesn’t affect the verdict, because a signed transaction may never be sent.',
    action: DISTRUST,
  },
  reevaluation: {
    pass: 'The evidence also passes at the other time.',
    fail: 'The evidence doesn’t pass at the time that you gave. The steps above are about the time of issue.',
    action: 'The signature stays valid. Ask the operator whether the platform has been updated since.',
  },
  subject: {
    pass: 'The receipt is about the signature that you asked for.',
    fail: 'This receipt is about another signature than the one that you asked for.',
    action: 'The link or event points to the wrong receipt. Don’t use it as proof of your signature.',
  },
}

/** For the step `event` of a receipt that a checkpoint published. */
const checkpointWords: StepWords = {
  pass: 'The public chain has a checkpoint of the log with this signature, so removing it would be noticed.',
  fail: 'No valid checkpoint on the public chain covers this signature.',
  skip: 'The checkpoint on the chain could not be checked. The reason is below.',
  action: 'Check the log in your manifest and the node. If the receipt is new, try again in a few minutes.',
}

/** Failure codes with more specific words than their step. */
export const codeWords: Readonly<Record<string, Partial<Pick<StepWords, 'fail' | 'action'>>>> = {
  tcb_status_not_accepted: {
    fail: 'Intel rates the processor’s firmware or settings as out of date.',
    action: 'To accept that, name the status with --tcb-status.',
  },
  tcb_evaluation_too_old: {
    fail: 'Intel’s data about the platform is older than the manifest requires.',
    action:
      'It may not include known weaknesses. If the receipt is older than the manifest, use the manifest of its release.',
  },
  tcb_too_old: {
    fail: 'The coordinator’s firmware is older than the manifest requires.',
    action: 'It may have known weaknesses. If the receipt is older than the manifest, use the manifest of its release.',
  },
  platform_not_allowed: {
    fail: 'The anchors don’t accept this machine or kind of processor.',
  },
  alias_check_missing: {
    fail: 'The coordinator’s firmware doesn’t confirm that it checked the memory.',
    action: 'Someone with physical access to the machine may read its memory. Ask the operator to update the firmware.',
  },
  chip_not_listed: {
    fail: 'Software can read the secrets of this kind of chip, and the anchors don’t list this one.',
    action: 'Accept it only if you know its owner: list it in a manifest or with --coordinator-chip.',
  },
  chip_not_named: {
    fail: 'The anchors list chips, but a key of the cloud provider signed the report, and it names no chip.',
  },
  certificate_revoked: {
    fail: 'The hardware vendor has revoked a certificate of this evidence.',
    action: DISTRUST,
  },
  crl_expired: {
    fail: 'The vendor’s revocation list had expired, so later revocations are missing from it.',
    action: 'Provide a list that was valid at that time.',
  },
  crl_not_yet_valid: {
    fail: 'The vendor’s revocation list is newer than the time it was used for.',
    action: 'Provide a list that was valid at that time, and check your clock.',
  },
  crl_without_next_update: {
    fail: 'The revocation list has no expiry date, so it could hide every later revocation.',
  },
  crl_signature_invalid: {
    fail: 'The vendor’s key did not sign the revocation list: it is for another product, or forged.',
  },
  quorum_missing: {
    fail: 'Too few of the witnesses in the enclave’s settings cosigned the log.',
  },
  inclusion_invalid: {
    fail: 'This signature is not in the log.',
  },
  receipt_version_unsupported: {
    fail: 'These bytes are not a receipt, or have a version that this verifier doesn’t support.',
    action: 'This verifier reads versions 1 and 2. A newer receipt needs a newer verifier.',
  },
  debug_enabled: { fail: 'The machine ran in debug mode, so its host could read every secret.' },
  root_not_trusted: {
    fail: 'The evidence is forged: its root is neither the vendor’s nor the simulator’s.',
  },
  tcb_info_not_in_date: outOfDate(),
  qe_identity_not_in_date: outOfDate(),
  certificate_not_in_date: outOfDate(),
}

function outOfDate() {
  return {
    fail: 'The vendor’s data was not valid at the time it was used for.',
    action: 'With --at, provide collateral of that time. Otherwise, don’t rely on this receipt.',
  }
}
