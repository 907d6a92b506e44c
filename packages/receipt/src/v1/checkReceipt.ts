import { createVerifier, type TrustedRoot, type Verifier } from '@countersign/attestation'
import type { Anchors } from './anchors.ts'
import { parseReceipt } from './canonicalBytes.ts'
import { type ChainReader, checkChain, type TimeBound, type TimePolicy } from './checkChain.ts'
import { checkCoordinator } from './checkCoordinator.ts'
import type { CoordinatorPolicy, GivenRevocations } from './checkMachine.ts'
import { checkReevaluation, checkSigner, type SignerPolicy } from './checkSigner.ts'
import { checkTransaction } from './checkTransaction.ts'
import { checkWitness } from './checkWitness.ts'
import { toCid } from './cid.ts'
import type { AttestationReceiptV1 } from './schema.ts'
import { anchorSteps, requiredSteps, type Step, type StepId } from './steps.ts'
import { createTranscript, failIf, needs } from './transcript.ts'

export type CheckReceiptOptions = {
  /** `vendorRoots`; with mock roots beside them, mock evidence is distinguished from forged evidence. */
  roots: readonly TrustedRoot[]
  anchors?: Anchors
  policy?: { signer?: SignerPolicy; coordinator?: CoordinatorPolicy; time?: TimePolicy }
  /** Keys of simulated satellites: a sample under one makes the whole MOCK. */
  mockEntropyKeys?: readonly string[]
  /** The CID by which the receipt was asked for. */
  cid?: string
  chain?: ChainReader
  /**
   * False where no event is expected yet. The chain is asked all the same, and what it answers counts: only that there is no
   * event at all is then a skip and not a failure. True unless given.
   */
  isEventDue?: boolean
  /**
   * AMD's revocation list of the coordinator's product, which a receipt of version 1 cannot carry. It is judged at its own time, that at
   * which the reader has it: a list of today may well name a key of last year. Left out, the step is a skip.
   */
  revocations?: GivenRevocations
  /** Judge the evidence at another time than that of signing, with the collateral of that time. */
  reevaluation?: { at: Date; collateral: Uint8Array }
  /** One verifier for many receipts of the same platform; it must have been made with `roots`. */
  verifier?: Verifier
  /** Called with each step as it finishes. */
  onStep?: (step: Step) => void
}

/**
 * - `verified`: every required step passed, on hardware, with code that the reader knows, at a time that the chain bounds
 * - `mock`: nothing failed, but a part is simulated; it proves nothing about hardware
 * - `unknown-code`: genuine hardware, but an anchor is missing
 * - `late`: all else holds, but the event came too long after the stated time of signing
 * - `unbounded`: all else holds, but no event was seen: no chain was asked, or it has none yet
 * - `incomplete`: nothing failed, but a required step could not be judged
 * - `failed`: a step failed
 */
export type Verdict = 'verified' | 'mock' | 'unknown-code' | 'late' | 'unbounded' | 'incomplete' | 'failed'

export type ReceiptCheck = {
  verdict: Verdict
  /** Decided by the roots and keys that verified, never by what the receipt says. */
  isMock: boolean
  /** Whether every anchor was given and matched. */
  isKnownCode: boolean
  /** The chain has no event, which is no failure as none was due. */
  isEventMissing: boolean
  /** Whether an event bounds the time of signing from above. */
  timeBound: TimeBound
  steps: readonly Step[]
  /** The CID of the bytes. */
  cid: string
  /** There when the bytes are a receipt. */
  receipt: AttestationReceiptV1 | undefined
}

/**
 * Checks a receipt, step by step, against nothing but what the caller trusts. Judged as issued: the evidence must have been
 * good at the time of signing, with the collateral that the receipt names.
 *
 * @example
 * const { verdict, steps } = await checkReceipt(receiptBytes, collateralBytes, { roots: vendorRoots, anchors })
 */
export async function checkReceipt(
  bytes: Uint8Array,
  collateral: Uint8Array | undefined,
  options: CheckReceiptOptions,
): Promise<ReceiptCheck> {
  const { anchors = {}, policy = {}, mockEntropyKeys = [], reevaluation, isEventDue = true } = options
  const transcript = createTranscript(options.onStep)
  const cid = toCid(bytes)

  const receipt = await transcript.run('format', () => {
    const parsed = parseReceipt(bytes)
    return [`Version 1, ${bytes.length} bytes.`, parsed]
  })
  await transcript.run('cid', () => {
    const expected = needs(options.cid, `there is no CID to compare ${cid} with`)
    failIf(expected !== cid, `The bytes have the CID ${cid}, not ${expected}.`)
    return [`The bytes have the CID ${cid}.`, undefined]
  })
  if (receipt === undefined) {
    const nothing = { isMock: false, isEventMissing: false, timeBound: 'unbounded' } as const
    return toCheck({ ...nothing, steps: transcript.steps, cid, receipt, options })
  }

  const verifier = options.verifier ?? createVerifier({ roots: options.roots })
  const at = new Date(receipt.signer.statement.signedAt)
  const signer = { verifier, collateral, at, anchors, policy: policy.signer ?? {} }
  await checkTransaction(transcript, receipt)
  const signerRoot = await checkSigner(transcript, receipt, signer)
  const witnessMode = await checkWitness(transcript, receipt, { anchors, mockEntropyKeys })
  const coordinatorRoot = await checkCoordinator(transcript, receipt, {
    verifier,
    at,
    anchors,
    policy: policy.coordinator ?? {},
    revocations: options.revocations,
  })
  const { isEventMissing, timeBound } = await checkChain(transcript, receipt, {
    chain: options.chain,
    anchors,
    policy: policy.time ?? {},
    cid,
    isEventDue,
  })
  if (reevaluation !== undefined) await checkReevaluation(transcript, receipt, { ...signer, reevaluation })

  const isMock = signerRoot?.mode === 'mock' || coordinatorRoot?.mode === 'mock' || witnessMode === 'mock'
  return toCheck({ steps: transcript.steps, isMock, isEventMissing, timeBound, cid, receipt, options })
}

function toCheck(result: {
  steps: readonly Step[]
  isMock: boolean
  isEventMissing: boolean
  timeBound: TimeBound
  cid: string
  receipt: AttestationReceiptV1 | undefined
  options: CheckReceiptOptions
}): ReceiptCheck {
  const { steps, isMock, isEventMissing, timeBound, cid, receipt, options } = result
  const statusOf = (id: StepId) => steps.find((step) => step.id === id)?.status
  const isEventRequired = options.chain !== undefined && options.anchors?.contract !== undefined && !isEventMissing
  const required: StepId[] = [
    ...requiredSteps,
    ...(options.cid === undefined ? [] : (['cid'] as const)),
    ...(options.anchors?.platforms?.length ? (['platform'] as const) : []),
    ...(isEventRequired ? (['event'] as const) : []),
    ...(options.reevaluation === undefined ? [] : (['reevaluation'] as const)),
  ]
  const isKnownCode = anchorSteps.every((id) => statusOf(id) === 'pass')
  const isComplete = required.every((id) => anchorSteps.includes(id) || statusOf(id) === 'pass')
  const isFailed = steps.some(({ status }) => status === 'fail')
  const verdict = toVerdict({ isFailed, isComplete, isMock, isKnownCode, timeBound })
  return { verdict, isMock, isKnownCode, isEventMissing, timeBound, steps, cid, receipt }
}

/** Worst first. Of unknown code not even the time of signing can be believed, so that the chain comes after it. */
function toVerdict(
  found: Pick<ReceiptCheck, 'isMock' | 'isKnownCode' | 'timeBound'> & { isFailed: boolean; isComplete: boolean },
): Verdict {
  if (found.isFailed) return 'failed'
  if (!found.isComplete) return 'incomplete'
  if (found.isMock) return 'mock'
  if (!found.isKnownCode) return 'unknown-code'
  return found.timeBound === 'bounded' ? 'verified' : found.timeBound
}
