import { createVerifier, type TrustedRoot, type VerifiedQuote, type Verifier } from '@countersign/attestation'
import type { Policy } from '@countersign/policy'
import { fromHex } from '@countersign/protocol'
import { parseReceipt, peekVersion } from './canonicalCodec.ts'
import type { Anchors } from './check/anchors.ts'
import { type ChainReader, checkChain, type TimeBound, type TimePolicy } from './check/checkChain.ts'
import { type CoordinatorPolicy, checkCoordinator, type GivenRevocations } from './check/checkCoordinator.ts'
import { checkReevaluation, checkSigner, type SignerPolicy } from './check/checkSigner.ts'
import { checkTransaction } from './check/checkTransaction.ts'
import { checkWitness } from './check/checkWitness.ts'
import {
  anchorSteps,
  createTranscript,
  failIf,
  isNotInManifest,
  isStepOf,
  needs,
  requiredSteps,
  type Step,
  type StepId,
  type Transcript,
  vaultSteps,
} from './check/steps.ts'
import { toCid } from './cid.ts'
import type { AnyReceipt, ReceiptView } from './receiptView.ts'
import { checkRelease, checkStatement } from './v1/checkSignedParts.ts'
import { ATTESTATION_V2, type GivenBlocks, parseBlock } from './v2/blocks.ts'
import { type Logged, skipLog } from './v2/checkLog.ts'
import { refuseOpening } from './v2/checkOpening.ts'
import { type Reading, readAttestation } from './v2/readAttestation.ts'

export type CheckReceiptOptions = {
  /** `vendorRoots`; with mock roots beside them, mock evidence is distinguished from forged evidence. */
  roots: readonly TrustedRoot[]
  anchors?: Anchors | undefined
  policy?: { signer?: SignerPolicy; coordinator?: CoordinatorPolicy; time?: TimePolicy } | undefined
  /** Keys of simulated satellites and beacons: a sample under one makes the whole MOCK. */
  mockEntropyKeys?: readonly string[] | undefined
  /** The CID by which the receipt was asked for. */
  cid?: string | undefined
  chain?: ChainReader | undefined
  /**
   * False where no event is expected yet. The chain is asked all the same, and what it answers counts: only that there is no
   * event at all is then a skip and not a failure. True unless given.
   */
  isEventDue?: boolean | undefined
  /**
   * AMD's revocation list of the coordinator's product, which a receipt of version 1 cannot carry. It is judged at its own time, that at
   * which the reader has it: a list of today may well name a key of last year. Left out, the list in the receipt is judged at the
   * time of signing; without either, the step is a skip.
   */
  revocations?: GivenRevocations | undefined
  /** Judge the evidence at another time than that of signing, with the collateral of that time. */
  reevaluation?: { at: Date; collateral: Uint8Array } | undefined
  /** The blocks of a receipt of version 2, beside its collateral. */
  blocks?: GivenBlocks | undefined
  /** Opens the commitment of an off-chain signature: the file's bytes, with one half or both. */
  opening?: Uint8Array | undefined
  /** One verifier for many receipts of the same platform; it must have been made with `roots`. */
  verifier?: Verifier | undefined
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
  /** The evidence is genuine. The receipt fails only because the reader's anchors do not cover it. */
  isNotListed: boolean
  /** The chain has no event, which is no failure as none was due. */
  isEventMissing: boolean
  /** Whether an event bounds the time of signing from above. */
  timeBound: TimeBound
  steps: readonly Step[]
  /** The CID of the bytes. */
  cid: string
  /** There when the bytes are a receipt. */
  receipt: AnyReceipt | undefined
  /** What the steps of both versions read of it. Undefined where a block of it is missing or another. */
  view: ReceiptView | undefined
  /** The rules of the vault that signed. Undefined where none did, or they are not those in the statement. */
  policy: Policy | undefined
  /** Where it is in a log. Undefined where it is in none, or nothing proves that it is. */
  logged: Logged | undefined
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
    const parsed = parseAnyReceipt(bytes)
    return [`Version ${parsed.version.split('/')[1]}, ${bytes.length} bytes.`, parsed]
  })
  await transcript.run('cid', () => {
    const expected = needs(options.cid, `there is no CID to compare ${cid} with`)
    failIf(expected !== cid, `The bytes have the CID ${cid}, not ${expected}.`)
    return [`The bytes have the CID ${cid}.`, undefined]
  })
  const reading = receipt && (await readReceipt(transcript, receipt, options))
  const { steps } = transcript
  if (reading === undefined) {
    const nothing = { isMock: false, isEventMissing: false, timeBound: 'unbounded' } as const
    return conclude({ ...nothing, steps, cid, receipt, view: undefined, policy: undefined, logged: undefined }, options)
  }

  const verifier = options.verifier ?? createVerifier({ roots: options.roots })
  const { view } = reading
  const at = new Date(view.signer.statement.signedAt)
  const signer = { verifier, collateral, at, anchors, policy: policy.signer ?? {} }
  const quote = await checkSigner(transcript, view, signer)
  const witnessMode = await checkWitness(transcript, view, { anchors, mockEntropyKeys })
  const coordinatorRoot = await checkCoordinator(transcript, view, {
    verifier,
    at,
    anchors,
    policy: policy.coordinator ?? {},
    revocations: options.revocations ?? toCarriedRevocations(view, at),
  })
  await reading.checkRelease()
  const published = await checkChain(transcript, view, {
    chain: options.chain,
    anchors,
    policy: policy.time ?? {},
    cid,
    isEventDue,
  })
  if (reevaluation !== undefined) await checkReevaluation(transcript, view, { ...signer, reevaluation })

  const isMock = quote?.root.mode === 'mock' || coordinatorRoot?.mode === 'mock' || witnessMode === 'mock'
  const { policy: rules, logged } = reading
  const shown = { receipt, view: withTcbStatus(view, quote), policy: rules, logged }
  return conclude({ ...published, ...shown, steps, isMock, cid }, options)
}

/** Version 2 does not repeat the status that the quote was found to have. */
function withTcbStatus(view: ReceiptView, quote: VerifiedQuote | undefined): ReceiptView {
  if (quote === undefined || view.signer.tcbStatus !== undefined) return view
  return { ...view, signer: { ...view.signer, tcbStatus: quote.tcb.status } }
}

/** The list that a receipt of version 2 carries, which held when the coordinator released. A reader's own is newer. */
function toCarriedRevocations(view: ReceiptView, at: Date): GivenRevocations | undefined {
  const { revocations } = view.coordinator.selfAttestation
  return revocations === undefined ? undefined : { list: fromHex(revocations), at }
}

/** The receipt's own steps, by its version; what the steps of both versions read; and the step that comes after them. */
async function readReceipt(
  transcript: Transcript,
  receipt: AnyReceipt,
  { blocks = {}, opening, anchors = {} }: CheckReceiptOptions,
): Promise<Reading | undefined> {
  if (receipt.version === ATTESTATION_V2) {
    return readAttestation(transcript, receipt, { blocks, opening, policies: anchors.logWitnesses ?? [] })
  }
  const { transaction, signer } = receipt
  if (opening !== undefined) await refuseOpening(transcript)
  await checkTransaction(transcript, { transaction, publicKey: signer.publicKey })
  await checkStatement(transcript, receipt)
  await skipLog(transcript, anchors.logWitnesses ?? [])
  return { view: receipt, policy: undefined, logged: undefined, checkRelease: () => checkRelease(transcript, receipt) }
}

/** Reads a receipt of either version from its canonical bytes; every other spelling is refused. */
export function parseAnyReceipt(bytes: Uint8Array): AnyReceipt {
  return peekVersion(bytes) === ATTESTATION_V2 ? parseBlock('attestation', bytes) : parseReceipt(bytes)
}

function conclude(
  found: Omit<ReceiptCheck, 'verdict' | 'isKnownCode' | 'isNotListed'>,
  options: CheckReceiptOptions,
): ReceiptCheck {
  const { steps, isMock, isEventMissing, timeBound, receipt, view } = found
  const statusOf = (id: StepId) => steps.find((step) => step.id === id)?.status
  const isEventRequired = options.chain !== undefined && options.anchors?.contract !== undefined && !isEventMissing
  // Version 1 has transactions only.
  const kind = receipt !== undefined && 'kind' in receipt ? receipt.kind : 'transaction'
  const required: StepId[] = [
    ...requiredSteps.filter((id) => isStepOf(id, kind)),
    ...(receipt?.version === ATTESTATION_V2 ? (['blocks'] as const) : []),
    ...(view?.signer.settings?.log || options.anchors?.logWitnesses?.length ? (['log'] as const) : []),
    ...(isOfVault(receipt) ? vaultSteps.filter((id) => isStepOf(id, kind)) : []),
    ...(options.opening === undefined ? [] : (['opening'] as const)),
    ...(options.cid === undefined ? [] : (['cid'] as const)),
    ...(options.anchors?.platforms?.length ? (['platform'] as const) : []),
    ...(isEventRequired ? (['event'] as const) : []),
    ...(options.reevaluation === undefined ? [] : (['reevaluation'] as const)),
  ].filter((id) => !anchorSteps.includes(id))
  const isKnownCode = anchorSteps.every((id) => statusOf(id) === 'pass')
  const isComplete = required.every((id) => statusOf(id) === 'pass')
  const failed = steps.filter(({ status }) => status === 'fail')
  const isFailed = failed.length > 0
  const isJudged = required.every((id) => ['pass', 'fail'].includes(statusOf(id) ?? ''))
  const isNotListed = isFailed && failed.every(isNotInManifest) && isJudged
  const verdict = toVerdict({ isFailed, isComplete, isMock, isKnownCode, timeBound })
  return { ...found, verdict, isKnownCode, isNotListed }
}

function isOfVault(receipt: AnyReceipt | undefined): boolean {
  return receipt?.version === ATTESTATION_V2 && receipt.signer.statement.policy !== null
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
