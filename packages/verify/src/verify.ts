import { type TcbStatus, type TrustedRoot, type Verifier, vendorRoots } from '@countersign/attestation'
import { simulatedEntropyKeys, simulatedRoots } from '@countersign/attestation/simulator'
import {
  MAX_BLOCK_BYTES,
  type OpeningContent,
  type OwnerIdentity,
  type ProofPayload,
  parseOpening,
  parseOwnerOpening,
  ServiceError,
} from '@countersign/protocol'
import {
  type AnyReceipt,
  checkReceipt,
  type LogContract,
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
import type { FoundAnchor } from './findAnchors.ts'
import { findBlock } from './getBlock.ts'
import { type GivenFile, type LoadedParts, loadParts, parseCollateralFile } from './loadParts.ts'
import { type LoadedReceipt, loadReceipt, type Phase, type Subject } from './loadReceipt.ts'
import type { Manifest } from './parseManifest.ts'
import { checkSubject, type VerifierStep } from './steps.ts'
import { toAnchors, toPolicy } from './toAnchors.ts'

export type Progress = { kind: 'phase'; phase: Phase } | { kind: 'step'; step: VerifierStep }

export type VerifyDeps = {
  fetchBytes: FetchBytes
  now: () => Date
  onProgress?: (progress: Progress) => void
  /** Returns blocks from next to the receipt. Ignores those with another CID. */
  findBeside?: (cid: string) => Promise<readonly Uint8Array<ArrayBuffer>[]>
  /** A shared verifier, created with `trustedRoots`, that caches common evidence. */
  verifier?: Verifier | undefined
  /** Replaces `rpc` if the caller has already read the chain. */
  chain?: Chain | undefined
}

export type VerifyRequest = {
  subject: Subject
  /** Trusted values. Of several manifests, lists are joined, the strictest minimum counts, and each one's witnesses must have cosigned. */
  manifests: readonly Manifest[]
  /** IPFS gateways, in order, before any that a proof names. */
  gateways?: readonly string[] | undefined
  /** The service, which is also a gateway. */
  api?: string | undefined
  /** A node of the chain with the events or checkpoints. Without it, nothing confirms the signing time. */
  rpc?: string | undefined
  /** The chain that the node must serve. Undefined accepts any. */
  chainId?: number | undefined
  /** The contract with the events on the node's chain, in lower case, if no manifest names it. */
  contract?: string | undefined
  /** `LogWitness` contracts on the node's chain, with the logs that count. They add to the manifests. */
  logContracts?: readonly LogContract[] | undefined
  /** Accepted TCB statuses, in addition to `UpToDate`. */
  tcbStatuses?: readonly TcbStatus[] | undefined
  /** Maximum seconds between signing and event; 72 hours by default. A manifest can shorten it. */
  maximumEventDelayS?: number | undefined
  /** Whether simulated evidence can be `accepted`. The verdict is `mock` in any case. */
  allowMock?: boolean | undefined
  /** The receipt's collateral, or with `at` the collateral of that time. */
  collaterals?: readonly GivenFile[] | undefined
  /** Also evaluates the evidence at this time. */
  at?: Date | undefined
  /** The opening of an off-chain signature, with one half or both, or of an address’s owner. It is not sent anywhere. */
  opening?: Uint8Array | undefined
  /** AMD's revocation list for the coordinator's product (DER), evaluated at `at`, or now. */
  revocations?: Uint8Array | undefined
  /** False if a missing event is not a failure. The same applies to a proof that its service doesn't report as complete. */
  isEventDue?: boolean | undefined
}

/**
 * The conclusion for a reader:
 * - `accepted`: every required step passed and every anchor matched, on hardware or allowed mock evidence, and the chain confirms the time
 * - `failed`: a step failed
 * - `contradicted`: nothing failed, but the service makes a false claim about the receipt
 * - `mock`: the evidence is simulated, and the caller doesn't allow that
 * - `incomplete`: nothing failed, but a required step could not be checked
 * - `unknown-code`: nothing failed, but an anchor is missing
 * - `late`: the event or checkpoint came too long after the stated signing time
 * - `unbounded`: none was found, because no chain was asked or it has none yet
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
    /** Some evidence is simulated, and the caller doesn't allow that. */
    isMockRefused: boolean
    steps: readonly VerifierStep[]
    /** The content of an off-chain signature, if the opening matches. */
    content: OpeningContent | undefined
    /** The owner of an address, if the opening matches. */
    owner: OwnerIdentity | undefined
    bytes: Uint8Array<ArrayBuffer>
    /** The events of this wallet and transaction. Undefined without a chain. */
    publications: readonly Publication[] | undefined
    /** The checkpoint that step `event` is about. Undefined if it is about an event. */
    anchor: FoundAnchor | undefined
    /** The service's response, if the receipt was named by a proof, and its checked claims. */
    proof: ProofPayload | undefined
    claims: readonly Claim[]
  }

/**
 * Finds a receipt and its evidence, and verifies it. Rejects with a `ServiceError` if there is nothing to verify, or if a file is not a
 * receipt or not collateral.
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
  const { gateways: all } = loaded
  const loading = { ...deps, findBeside: (cid: string) => findBeside(deps, loaded, cid), onPhase }
  const { blocks, collateral, fresh, problems } = await loadParts(loading, { receipt, files, gateways: all, at })

  const finding = { ...loading, onFetch: () => onPhase('chain') }
  const published = receipt && { receipt, cid: toCid(loaded.bytes), stated: proof?.anchor }
  const anchor =
    published &&
    (await chain?.findAnchor(published, (cid) => findBlock(finding, { cid, gateways: all, maxBytes: MAX_BLOCK_BYTES })))

  onPhase('steps')
  const subjectStep = receipt && checkSubject(loaded.transaction, receipt)
  const { tcbStatuses: statuses = [], maximumEventDelayS, isEventDue = true } = request
  const check = await checkReceipt(loaded.bytes, collateral?.bytes, {
    roots: trustedRoots(),
    mockEntropyKeys: simulatedEntropyKeys(),
    anchors: { ...toAnchors(manifests), contract: chain?.contract, logContracts: chain?.logContracts },
    policy: toPolicy({ statuses, maximumEventDelayS }, manifests),
    chain: chain?.reader,
    anchor: anchor?.given,
    isEventDue: isEventDue && (proof === undefined || proof.status === 'complete') && anchor?.isFinal !== false,
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
  const checkedReceipt = {
    ...check,
    verdict: isOtherSubject ? 'failed' : check.verdict,
    isMockRefused: check.isMock && !allowMock,
    isNotListed: check.isNotListed && !isOtherSubject,
    steps,
    publications: chain?.publications,
    anchor,
  } as const
  const claims = proof === undefined ? [] : compareClaims(proof, checkedReceipt)
  return {
    ...checkedReceipt,
    conclusion: conclude({ ...checkedReceipt, lies: findLies(claims) }),
    content: opening && readContent(opening, check),
    owner: opening && readOwner(opening, check),
    bytes: loaded.bytes,
    blocks,
    collateral,
    problems: [...problems, ...(anchor?.problems ?? [])],
    proof,
    claims,
  }
}

/** Throws for a file that is not a receipt. Bytes from a proof or event get a verdict instead, because those claim that it is a receipt. */
function readReceipt({ bytes, name }: LoadedReceipt, { kind }: Subject): AnyReceipt | undefined {
  try {
    return withSource(name, () => parseAnyReceipt(bytes))
  } catch (error) {
    if (kind === 'file' || !(error instanceof ServiceError)) throw error
    return undefined
  }
}

/** Searches the receipt's file first, then its folder. */
async function findBeside({ findBeside: find }: VerifyDeps, { carried }: LoadedReceipt, cid: string) {
  const inFile = carried.filter((block) => toCid(block) === cid)
  return inFile.length > 0 ? inFile : ((await find?.(cid)) ?? [])
}

function readContent(opening: Uint8Array, { steps }: ReceiptCheck): OpeningContent | undefined {
  const isShown = hasPassed(steps, 'opening') && hasPassed(steps, 'digest')
  const { content } = isShown ? parseOpening(opening) : {}
  return typeof content === 'object' ? content : undefined
}

function readOwner(opening: Uint8Array, { steps, receipt }: ReceiptCheck): OwnerIdentity | undefined {
  const isShown = nameKind(receipt) === 'address' && hasPassed(steps, 'opening')
  return isShown ? parseOwnerOpening(opening).identity : undefined
}

const nameKind = (receipt: AnyReceipt | undefined) =>
  receipt !== undefined && 'kind' in receipt ? receipt.kind : undefined

const hasPassed = (steps: ReceiptCheck['steps'], id: ReceiptCheck['steps'][number]['id']) =>
  steps.some((step) => step.id === id && step.status === 'pass')

/** The simulator's roots distinguish mock evidence from forged evidence. Mock evidence never counts as hardware. */
export function trustedRoots(): readonly TrustedRoot[] {
  return [...vendorRoots, ...simulatedRoots()]
}

/**
 * Returns the worst conclusion that applies: a failure, a false claim, refused mock evidence, missing evidence, unknown code, unknown time.
 * Allowed mock evidence counts like hardware.
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
  // With refused mock evidence, the claim that the quote was verified is false for that reason only.
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
