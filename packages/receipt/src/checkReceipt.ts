import { createVerifier, type TrustedRoot, type VerifiedQuote, type Verifier } from '@countersign/attestation'
import type { Policy } from '@countersign/policy'
import { fromHex } from '@countersign/protocol'
import { parseReceipt, peekVersion } from './canonicalCodec.ts'
import type { Anchors } from './check/anchors.ts'
import type { ChainReader } from './check/chainReader.ts'
import type { GivenAnchor } from './check/checkAnchor.ts'
import { checkChain, type TimeBound, type TimePolicy } from './check/checkChain.ts'
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
import { type LogInclusion, skipLog } from './v2/checkLog.ts'
import { refuseOpening } from './v2/checkOpening.ts'
import { type Reading, readAttestation } from './v2/readAttestation.ts'

export type CheckReceiptOptions = {
  /** `vendorRoots`. Add mock roots to distinguish mock evidence from forged evidence. */
  roots: readonly TrustedRoot[]
  anchors?: Anchors | undefined
  policy?: { signer?: SignerPolicy; coordinator?: CoordinatorPolicy; time?: TimePolicy } | undefined
  /** Keys of simulated satellites and beacons. A sample under one makes the whole receipt MOCK. */
  mockEntropyKeys?: readonly string[] | undefined
  /** The CID by which the receipt was requested. */
  cid?: string | undefined
  chain?: ChainReader | undefined
  /** The checkpoint that published the receipt, if no event did. */
  anchor?: GivenAnchor | undefined
  /**
   * False if no event is expected yet. A missing event then skips the step instead of failing it. Other results of the chain still count.
   * Default: true.
   */
  isEventDue?: boolean | undefined
  /**
   * AMD's revocation list for the coordinator's product, which a receipt of version 1 cannot carry. It is checked at its own time, because a
   * list of today may name a key of last year. Default: the list in the receipt, at the signing time. Without either, the step is skipped.
   */
  revocations?: GivenRevocations | undefined
  /** Also checks the evidence at another time, with the collateral of that time. */
  reevaluation?: { at: Date; collateral: Uint8Array } | undefined
  /** The blocks of a receipt of version 2, without its collateral. */
  blocks?: GivenBlocks | undefined
  /** The file that opens the commitment of an off-chain signature, with one half or both. */
  opening?: Uint8Array | undefined
  /** A shared verifier for many receipts of the same platform, created with `roots`. */
  verifier?: Verifier | undefined
  /** Called after each step. */
  onStep?: (step: Step) => void
}

/**
 * - `verified`: every required step passed, on hardware, with known code, and an event confirms the time
 * - `mock`: nothing failed, but a part is simulated; it proves nothing about hardware
 * - `unknown-code`: genuine hardware, but an anchor is missing
 * - `late`: all other steps passed, but the event came too long after the stated time of signing
 * - `unbounded`: all other steps passed, but no event was found: no chain was given, or it has none yet
 * - `incomplete`: nothing failed, but a required step could not be checked
 * - `failed`: a step failed
 */
export type Verdict = 'verified' | 'mock' | 'unknown-code' | 'late' | 'unbounded' | 'incomplete' | 'failed'

export type ReceiptCheck = {
  verdict: Verdict
  /** Determined by the roots and keys that verified, never by the receipt's own statements. */
  isMock: boolean
  /** Whether every anchor was given and matched. */
  isKnownCode: boolean
  /** The evidence is genuine. The receipt fails only because the reader's anchors do not cover it. */
  isNotListed: boolean
  /** The chain has no event, but none was expected yet. */
  isEventMissing: boolean
  /** Whether an event confirms the signing time. */
  timeBound: TimeBound
  steps: readonly Step[]
  /** The CID of the bytes. */
  cid: string
  /** Set if the bytes are a receipt. */
  receipt: AnyReceipt | undefined
  /** The values of either version that the steps use. Undefined if a block is missing or doesn't match. */
  view: ReceiptView | undefined
  /** The rules of the vault that signed. Undefined for a wallet, or if they differ from the statement's. */
  policy: Policy | undefined
  /** The position in a log. Undefined if there is no proof of one. */
  logged: LogInclusion | undefined
}

/**
 * Checks a receipt step by step, only against values that the caller trusts. The evidence is checked as issued: it must have been valid at
 * the
 * time of signing, with the collateral that the receipt names.
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
    anchor: options.anchor,
    entry: reading.entry,
  })
  if (reevaluation !== undefined) await checkReevaluation(transcript, view, { ...signer, reevaluation })

  const isMock = quote?.root.mode === 'mock' || coordinatorRoot?.mode === 'mock' || witnessMode === 'mock'
  const { policy: rules, logged } = reading
  const shown = { receipt, view: withTcbStatus(view, quote), policy: rules, logged }
  return conclude({ ...published, ...shown, steps, isMock, cid }, options)
}

/** Version 2 doesn't repeat the quote's TCB status. */
function withTcbStatus(view: ReceiptView, quote: VerifiedQuote | undefined): ReceiptView {
  if (quote === undefined || view.signer.tcbStatus !== undefined) return view
  return { ...view, signer: { ...view.signer, tcbStatus: quote.tcb.status } }
}

/** The list in a receipt of version 2, at the signing time. A list from the reader is newer. */
function toCarriedRevocations(view: ReceiptView, at: Date): GivenRevocations | undefined {
  const { revocations } = view.coordinator.selfAttestation
  return revocations === undefined ? undefined : { list: fromHex(revocations), at }
}

/** The steps that depend on the version, the values for the steps of both versions, and the last step. */
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
  const nothing = { policy: undefined, logged: undefined, entry: undefined }
  return { view: receipt, ...nothing, checkRelease: () => checkRelease(transcript, receipt) }
}

/** Parses a receipt of either version from its canonical bytes. Rejects any other spelling. */
export function parseAnyReceipt(bytes: Uint8Array): AnyReceipt {
  return peekVersion(bytes) === ATTESTATION_V2 ? parseBlock('attestation', bytes) : parseReceipt(bytes)
}

function conclude(
  found: Omit<ReceiptCheck, 'verdict' | 'isKnownCode' | 'isNotListed'>,
  options: CheckReceiptOptions,
): ReceiptCheck {
  const { steps, isMock, isEventMissing, timeBound, receipt, view } = found
  const statusOf = (id: StepId) => steps.find((step) => step.id === id)?.status
  const { contract = options.anchor?.contract } = options.anchors ?? {}
  const isEventRequired = options.chain !== undefined && contract !== undefined && !isEventMissing
  // Version 1 supports only transactions.
  const kind = receipt !== undefined && 'kind' in receipt ? receipt.kind : 'transaction'
  const required: StepId[] = [
    ...requiredSteps.filter((id) => isStepOf(id, kind)),
    ...(receipt?.version === ATTESTATION_V2 ? (['blocks'] as const) : []),
    ...(view?.signer.settings?.log || options.anchors?.logWitnesses?.length ? (['log'] as const) : []),
    ...(isOfVault(receipt) ? vaultSteps.filter((id) => isStepOf(id, kind)) : []),
    ...(isCounted(found) && isStepOf('vault-budget', kind) ? (['vault-budget'] as const) : []),
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

/** Whether the rule that allowed the signature counts it against budgets. */
function isCounted({ receipt, policy }: Pick<ReceiptCheck, 'receipt' | 'policy'>): boolean {
  const rule = receipt?.version === ATTESTATION_V2 ? receipt.signer.statement.rule : null
  return policy?.rules[rule ?? -1]?.kind === 'spend'
}

/** Worst first. With unknown code, even the signing time is unreliable, so the chain comes after it. */
function toVerdict(
  found: Pick<ReceiptCheck, 'isMock' | 'isKnownCode' | 'timeBound'> & { isFailed: boolean; isComplete: boolean },
): Verdict {
  if (found.isFailed) return 'failed'
  if (!found.isComplete) return 'incomplete'
  if (found.isMock) return 'mock'
  if (!found.isKnownCode) return 'unknown-code'
  return found.timeBound === 'bounded' ? 'verified' : found.timeBound
}
