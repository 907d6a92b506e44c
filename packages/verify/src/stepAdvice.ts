import type { VerifierStep } from './verify.ts'

/** What a failure means, and what to do about it, for somebody who does not know the protocol. */
type Advice = { meaning: string; action: string }

const DISTRUST = 'Do not rely on this receipt.'
const ASK_FOR_THE_ORIGINAL = `${DISTRUST} Get it again by its CID; if that one fails too, ask the service to explain.`

const byStep: Readonly<Record<VerifierStep['id'], Advice>> = {
  format: { meaning: 'The bytes are not a receipt.', action: 'Get the receipt again, unchanged.' },
  cid: {
    meaning: 'These are not the bytes that the CID names: somebody changed them, or another file has its name.',
    action: 'Get the receipt from another source.',
  },
  digest: {
    meaning: 'The transaction that the receipt shows is not the one that was signed.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  signature: { meaning: 'The wallet did not make this signature.', action: ASK_FOR_THE_ORIGINAL },
  'tx-hash': { meaning: 'The receipt names another transaction than the signed one.', action: ASK_FOR_THE_ORIGINAL },
  statement: {
    meaning: 'What the enclave said is about another signature than the one that the receipt shows.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  inclusion: {
    meaning: 'The path from the statement to the batch makes no sense, so the quote may cover something else.',
    action: ASK_FOR_THE_ORIGINAL,
  },
  collateral: {
    meaning: 'What should be Intel’s data about the platform is something else.',
    action: 'Get the block that the receipt names from another source.',
  },
  quote: {
    meaning: 'The quote does not verify up to Intel’s root: no Intel hardware vouches for this signature.',
    action: DISTRUST,
  },
  'report-data': {
    meaning: 'The quote is genuine, but it was made for something else than this signature.',
    action: DISTRUST,
  },
  'quote-policy': {
    meaning: 'The hardware is genuine, but the enclave was not in a state that keeps its secrets.',
    action: 'Read the reason above; only an outdated platform can be accepted, with --tcb-status.',
  },
  measurement: {
    meaning: 'Genuine hardware ran other code than the code you trust.',
    action: 'If it should be a newer release, get its measurements from the release, not from the receipt.',
  },
  config: {
    meaning: 'The enclave ran with other settings than those you trust: it may accept other sign-ins.',
    action: 'Read signer.config in the receipt (explain prints it) and ask the operator why it differs.',
  },
  entropy: { meaning: 'The entropy sample is forged or belongs to another signature.', action: DISTRUST },
  'entropy-key': {
    meaning: 'The entropy sample comes from a source that you do not trust.',
    action: 'Compare the key with the one that the source publishes.',
  },
  'coordinator-report': {
    meaning: 'The coordinator’s report does not verify up to AMD’s root: no AMD hardware vouches for it.',
    action: DISTRUST,
  },
  'coordinator-policy': {
    meaning: 'The coordinator’s hardware is genuine, but its machine could be inspected or moved.',
    action: DISTRUST,
  },
  'coordinator-key': {
    meaning: 'The attested coordinator is not the one that called the enclave.',
    action: DISTRUST,
  },
  'coordinator-measurement': {
    meaning: 'The coordinator ran other code than the code you trust.',
    action: 'If it should be a newer release, get its measurements from the release, not from the receipt.',
  },
  'coordinator-config': {
    meaning: 'The coordinator ran with other settings than those you trust.',
    action: 'Ask the operator why they differ.',
  },
  release: {
    meaning: 'The coordinator did not release this signature with this evidence; a part was exchanged later.',
    action: DISTRUST,
  },
  time: { meaning: 'The times in the evidence contradict each other.', action: DISTRUST },
  event: {
    meaning: 'The chain does not point to this receipt.',
    action: 'Check --contract and --rpc. A fresh receipt may not be published yet: then try again in some minutes.',
  },
  transaction: { meaning: 'The chain contradicts the receipt.', action: DISTRUST },
  reevaluation: {
    meaning:
      'When it was issued the evidence was as the steps above say. Judged at the time that you gave, it is not good.',
    action:
      'What was signed then stays signed; ask the operator whether the platform has been brought up to date since.',
  },
  subject: {
    meaning: 'The receipt may be genuine, but it is the receipt of another transaction than the one you asked about.',
    action: 'Whoever pointed you to it pointed to the wrong one. Do not take it for a proof of yours.',
  },
}

const byCode: Readonly<Record<string, Partial<Advice>>> = {
  tcb_status_not_accepted: {
    meaning: 'The hardware is genuine, but Intel rates its firmware or settings as not up to date.',
    action: 'If you accept that, name the status with --tcb-status.',
  },
  tcb_evaluation_too_old: {
    meaning: 'Intel’s data about the platform is from before the evaluation that your manifest asks for.',
    action:
      'Known weaknesses may be missing from it. If the receipt is older than the manifest, use that of its release.',
  },
  tcb_too_old: {
    meaning: 'The coordinator’s hardware is genuine, but its firmware is older than your manifest asks for.',
    action: 'Known weaknesses may be open in it. If the receipt is older than the manifest, use that of its release.',
  },
  platform_not_allowed: {
    meaning: 'The coordinator’s hardware is genuine, but your manifest does not accept this kind of processor.',
  },
  debug_enabled: { meaning: 'The machine was started in debug mode: its host could read every secret.' },
  root_not_trusted: {
    meaning: 'The evidence was signed under a root that is neither the vendor’s nor the simulator’s. It is forged.',
  },
  crl_not_in_date: outOfDate(),
  tcb_info_not_in_date: outOfDate(),
  qe_identity_not_in_date: outOfDate(),
  certificate_not_in_date: outOfDate(),
}

function outOfDate(): Partial<Advice> {
  return {
    meaning: 'The vendor’s data was not valid at the time it was used for, so it says nothing about that time.',
    action: 'With --at, give collateral of that very time. Without, do not rely on this receipt.',
  }
}

export function adviseOn({ id, code }: VerifierStep): Advice {
  return { ...byStep[id], ...(code === undefined ? {} : byCode[code]) }
}
