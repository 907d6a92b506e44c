import { type TcbStatus, type TrustedRoot, type Verifier, vendorRoots } from '@countersign/attestation'
import { simulatedEntropyKeys, simulatedRoots } from '@countersign/attestation/simulator'
import { type OpeningContent, type ProofPayload, parseOpening, ServiceError } from '@countersign/protocol'
import {
  type AnyReceipt,
  checkReceipt,
  parseAnyReceipt,
  type ReceiptCheck,
  type TimeBound,
  toCid,
  type Verdict,
} from '@countersign/receipt'
import { type Claim, compareClaims, findLies } from './compareClaims.ts'
import { type Chain, openChain, type Publication } from './createChain.ts'
import { withSource } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import { type GivenFile, type LoadedParts, loadParts, parseCollateralFile } from './loadParts.ts'
import { type LoadedReceipt, loadReceipt, type Phase, type Subject } from './loadReceipt.ts'
import type { Manifest } from './parseManifest.ts'
import { checkSubject, type VerifierStep } from './steps.ts'
import { toAnchors, toPolicy } from './toAnchors.ts'

/** What is being done, and each step as it finishes. */
export type Progress = { kind: 'phase'; phase: Phase } | { kind: 'step'; step: VerifierStep }

export type VerifyDeps = {
  fetchBytes: FetchBytes
  now: () => Date
  onProgress?: (progress: Progress) => void
  /** Blocks that lie where the receipt came from; those with another CID are passed over. */
  findBeside?: (cid: string) => Promise<readonly Uint8Array<ArrayBuffer>[]>
  /** One for many receipts, made with `trustedRoots`: it remembers what they share. */
  verifier?: Verifier | undefined
  /** The chain, where the caller has read it already; `rpc` is then not asked. */
  chain?: Chain | undefined
}

export type VerifyRequest = {
  subject: Subject
  /** What the receipt is held against. Anchors of several add up; of their minimums the strictest decides, and each's witnesses must have cosigned. */
  manifests: readonly Manifest[]
  /** IPFS gateways, in the order in which they are asked, before any that a proof names. */
  gateways?: readonly string[] | undefined
  /** The service; it is a gateway too. */
  api?: string | undefined
  /** A node of the chain that has the events. Without it the chain is not asked, and nothing bounds the time of signing. */
  rpc?: string | undefined
  /** The chain that the node must be of; one of another chain is not believed. Without it, any chain will do. */
  chainId?: number | undefined
  /** The contract on the node's chain, in lower case, where no manifest names it. */
  contract?: string | undefined
  /** TCB statuses that are accepted beside `UpToDate`. */
  tcbStatuses?: readonly TcbStatus[] | undefined
  /** How long after the signing an event may come, in seconds; 72 hours unless given. A manifest can shorten it. */
  maximumEventDelayS?: number | undefined
  /** Whether simulated evidence may be concluded to be accepted. It is called mock in any case. */
  allowMock?: boolean | undefined
  /** Files that should be the receipt's collateral, or with `at` that of the other time. */
  collaterals?: readonly GivenFile[] | undefined
  /** Judge the evidence again, at this time. */
  at?: Date | undefined
  /** Opens the commitment of an off-chain signature: a file with one half or both. It goes nowhere but into the check. */
  opening?: Uint8Array | undefined
  /** AMD's revocation list of the coordinator's product (DER), judged at `at`, or now. */
  revocations?: Uint8Array | undefined
  /**
   * False where the reader allows that there is no event yet. None is due either of a proof that its service does not call
   * complete. The chain is asked all the same, since that is the word of the party that is judged: only the absence of an event
   * is then no failure.
   */
  isEventDue?: boolean | undefined
}

/**
 * What a reader may rely on:
 * - `accepted`: every required step passed, every anchor matched and the chain bounds the time, on hardware, or on mock evidence
 *   where that is allowed
 * - `failed`: a step failed
 * - `contradicted`: nothing failed, but the service says something false about the receipt
 * - `mock`: the evidence is simulated, and that is not allowed
 * - `incomplete`: nothing failed, but a required step could not be judged
 * - `unknown-code`: nothing failed, but an anchor is missing
 * - `late`: all else holds, but the event came too long after the stated time of signing
 * - `unbounded`: all else holds, but no event was seen: no chain was asked, or it has none yet
 */
export type Conclusion =
  | 'accepted'
  | 'failed'
  | 'contradicted'
  | 'incomplete'
  | 'mock'
  | 'unknown-code'
  | 'late'
  | 'unbounded'

export type Outcome = Omit<ReceiptCheck, 'steps'> &
  Pick<LoadedParts, 'blocks' | 'collateral' | 'problems'> & {
    conclusion: Conclusion
    /** A part of the evidence is simulated, and that is not allowed. */
    isMockRefused: boolean
    steps: readonly VerifierStep[]
    /** What an opening shows of an off-chain signature, where it is of this one and hashes to what was signed. */
    content: OpeningContent | undefined
    bytes: Uint8Array<ArrayBuffer>
    /** The events of this wallet and transaction. Undefined where there was no chain to ask. */
    publications: readonly Publication[] | undefined
    /** The service's answer, where the receipt was reached through one, and what became of each of its claims. */
    proof: ProofPayload | undefined
    claims: readonly Claim[]
  }

/**
 * Finds a receipt, gathers all that it is held against, and judges it. Rejects with a `ServiceError` where there is nothing to
 * judge: a `VerifierError`, or the error of a file that is no receipt or no collateral.
 *
 * @example
 * const fetchBytes = createFetchBytes({ fetch, timeoutMs: 10_000 })
 * const subject = { kind: 'cid', cid } as const
 * const { conclusion, steps } = await verify({ fetchBytes, now: () => new Date() }, { subject, manifests, gateways })
 */
export async function verify(deps: VerifyDeps, request: VerifyRequest): Promise<Outcome> {
  const { subject, manifests, gateways = [], api, at, revocations, opening, allowMock = false } = request
  const onProgress = deps.onProgress ?? (() => {})
  const onPhase = (phase: Phase) => onProgress({ kind: 'phase', phase })
  const steps: VerifierStep[] = []
  const onStep = (step: VerifierStep) => {
    steps.push(step)
    onProgress({ kind: 'step', step })
  }

  const files = (request.collaterals ?? []).map(parseCollateralFile)
  const chain = deps.chain ?? (await openChain(deps, request))
  const loaded = await loadReceipt({ ...deps, onPhase }, { subject, gateways, api, chain })
  const { proof } = loaded
  const receipt = readReceipt(loaded, subject)
  const { blocks, collateral, fresh, problems } = await loadParts(
    { ...deps, findBeside: (cid) => findBeside(deps, loaded, cid), onPhase },
    { receipt, files, gateways: loaded.gateways, at },
  )

  onPhase('steps')
  const subjectStep = receipt && checkSubject(loaded.transaction, receipt)
  const { tcbStatuses: statuses = [], maximumEventDelayS, isEventDue = true } = request
  const check = await checkReceipt(loaded.bytes, collateral?.bytes, {
    roots: trustedRoots(),
    mockEntropyKeys: simulatedEntropyKeys(),
    anchors: { ...toAnchors(manifests), contract: chain?.contract },
    policy: toPolicy({ statuses, maximumEventDelayS }, manifests),
    chain: chain?.reader,
    isEventDue: isEventDue && (proof === undefined || proof.status === 'complete'),
    blocks,
    verifier: deps.verifier,
    opening,
    cid: loaded.cid,
    reevaluation: at && fresh && { at, collateral: fresh.bytes },
    revocations: revocations && { list: revocations, at: at ?? deps.now() },
    onStep(step) {
      onStep(step)
      if (step.id === 'statement' && subjectStep !== undefined) onStep(subjectStep)
    },
  })
  if (subjectStep !== undefined && !steps.includes(subjectStep)) onStep(subjectStep)
  const isOtherSubject = subjectStep?.status === 'fail'
  const judged = {
    ...check,
    verdict: isOtherSubject ? 'failed' : check.verdict,
    isMockRefused: check.isMock && !allowMock,
    isNotListed: check.isNotListed && !isOtherSubject,
    steps,
    publications: chain?.publications,
  } as const
  const claims = proof === undefined ? [] : compareClaims(proof, judged)
  return {
    ...judged,
    conclusion: conclude({ ...judged, lies: findLies(claims) }),
    content: opening && readContent(opening, check),
    bytes: loaded.bytes,
    blocks,
    collateral,
    problems,
    proof,
    claims,
  }
}

/** A file that is no receipt is bad input. Bytes that a pointer leads to are judged: the pointer claims that they are one. */
function readReceipt({ bytes, name }: LoadedReceipt, { kind }: Subject): AnyReceipt | undefined {
  try {
    return withSource(name, () => parseAnyReceipt(bytes))
  } catch (error) {
    if (kind === 'file' || !(error instanceof ServiceError)) throw error
    return undefined
  }
}

/** In the receipt's own file first, then in its folder. */
async function findBeside({ findBeside: find }: VerifyDeps, { carried }: LoadedReceipt, cid: string) {
  const inFile = carried.filter((block) => toCid(block) === cid)
  return inFile.length > 0 ? inFile : ((await find?.(cid)) ?? [])
}

function readContent(opening: Uint8Array, { steps }: ReceiptCheck): OpeningContent | undefined {
  const isShown = (['opening', 'digest'] as const).every((id) =>
    steps.some((step) => step.id === id && step.status === 'pass'),
  )
  const { content } = isShown ? parseOpening(opening) : {}
  return typeof content === 'object' ? content : undefined
}

/** With the simulator's roots mock evidence is distinguished from forged evidence; it never counts as hardware. */
export function trustedRoots(): readonly TrustedRoot[] {
  return [...vendorRoots, ...simulatedRoots()]
}

/**
 * Worst first: what failed, what the service lies about, what is simulated without leave, what could not be judged, what is
 * genuine but unknown, and what is known but of a time that nothing bounds. Whatever else is missing, evidence that is known to
 * be simulated will not become hardware; where it is allowed, it is judged as hardware is.
 */
export function conclude(check: {
  verdict: Verdict
  isKnownCode: boolean
  timeBound: TimeBound
  isMockRefused: boolean
  lies: readonly Pick<Claim, 'member'>[]
}): Conclusion {
  const { verdict, isKnownCode, timeBound, isMockRefused, lies } = check
  if (verdict === 'failed') return 'failed'
  // That the quote was verified is false only because mock evidence is refused, so that this claim adds nothing to it.
  if (lies.some(({ member }) => !(isMockRefused && member === 'kmsQuoteVerified'))) return 'contradicted'
  if (isMockRefused) return 'mock'
  switch (verdict) {
    case 'mock':
      if (!isKnownCode) return 'unknown-code'
      return timeBound === 'bounded' ? 'accepted' : timeBound
    case 'verified':
      return 'accepted'
    default:
      return verdict
  }
}
