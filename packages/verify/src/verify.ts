import { type TcbStatus, type TrustedRoot, type Verifier, vendorRoots } from '@countersign/attestation'
import { simulatedEntropyKeys, simulatedRoots } from '@countersign/attestation/simulator'
import { type OpeningContent, type ProofPayload, parseOpening, ServiceError } from '@countersign/protocol'
import {
  type AnyReceipt,
  ATTESTATION_V2,
  type CheckReceiptOptions,
  checkReceipt,
  type GivenBlocks,
  parseAnyReceipt,
  type ReceiptCheck,
  toCid,
} from '@countersign/receipt'
import { type Claim, compareClaims, findLies } from './compareClaims.ts'
import { type Conclusion, conclude } from './conclude.ts'
import { type Chain, openChain, type Publication } from './createChain.ts'
import { withSource } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import { type LoadedBlocks, loadBlocks } from './loadBlocks.ts'
import {
  chooseFreshCollateral,
  type GivenFile,
  type LoadedCollateral,
  loadCollateral,
  parseCollateralFile,
} from './loadCollateral.ts'
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
  verifier?: Verifier
  /** The chain, where the caller has read it already; `rpc` is then not asked. */
  chain?: Chain
}

export type VerifyRequest = {
  subject: Subject
  /** What the receipt is held against. Anchors of several add up; of their minimums the strictest decides, and each's witnesses must have cosigned. */
  manifests: readonly Manifest[]
  /** IPFS gateways, in the order in which they are asked, before any that a proof names. */
  gateways?: readonly string[]
  /** The service; it is a gateway too. */
  api?: string
  /** A node of the chain that has the events. Without it the chain is not asked, and nothing bounds the time of signing. */
  rpc?: string
  /** The chain that the node must be of; one of another chain is not believed. Without it, any chain will do. */
  chainId?: number
  /** The contract on the node's chain, in lower case, where no manifest names it. */
  contract?: string
  /** TCB statuses that are accepted beside `UpToDate`. */
  tcbStatuses?: readonly TcbStatus[]
  /** How long after the signing an event may come, in seconds; 72 hours unless given. A manifest can shorten it. */
  maximumEventDelayS?: number
  /** Whether simulated evidence may be concluded to be accepted. It is called mock in any case. */
  allowMock?: boolean
  /** Files that should be the receipt's collateral, or with `at` that of the other time. */
  collaterals?: readonly GivenFile[]
  /** Judge the evidence again, at this time. */
  at?: Date
  /** Opens the commitment of an off-chain signature: a file with one half or both. It goes nowhere but into the check. */
  opening?: Uint8Array
  /** AMD's revocation list of the coordinator's product (DER), judged at `at`, or now. */
  revocations?: Uint8Array
  /**
   * False where the reader allows that there is no event yet. None is due either of a proof that its service does not call
   * complete. The chain is asked all the same, since that is the word of the party that is judged: only the absence of an event
   * is then no failure.
   */
  isEventDue?: boolean
}

export type Outcome = Pick<
  ReceiptCheck,
  | 'verdict'
  | 'isMock'
  | 'isKnownCode'
  | 'isNotListed'
  | 'isEventMissing'
  | 'timeBound'
  | 'cid'
  | 'view'
  | 'policy'
  | 'logged'
> & {
  conclusion: Conclusion
  /** A part of the evidence is simulated, and that is not allowed. */
  isMockRefused: boolean
  steps: readonly VerifierStep[]
  /** Undefined where the bytes that a pointer leads to are no receipt, which fails the step `format`. */
  receipt: AnyReceipt | undefined
  /** What an opening shows of an off-chain signature, where it is of this one and hashes to what was signed. */
  content: OpeningContent | undefined
  bytes: Uint8Array<ArrayBuffer>
  /** Of version 2: those that were to be had. */
  blocks: GivenBlocks
  /** `name` is that of the file that it came from. */
  collateral: { bytes: Uint8Array<ArrayBuffer>; name: string | undefined } | undefined
  /** The events of this wallet and transaction. Undefined where there was no chain to ask. */
  publications: readonly Publication[] | undefined
  /** The service's answer, where the receipt was reached through one, and what became of each of its claims. */
  proof: ProofPayload | undefined
  claims: readonly Claim[]
  /** What could not be fetched, and why. */
  problems: readonly string[]
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
  const {
    subject,
    manifests,
    gateways = [],
    api,
    rpc,
    contract,
    chainId,
    at,
    revocations,
    opening,
    allowMock = false,
    isEventDue = true,
  } = request
  const onProgress = deps.onProgress ?? (() => {})
  const onPhase = (phase: Phase) => onProgress({ kind: 'phase', phase })
  const steps: VerifierStep[] = []
  const onStep = (step: VerifierStep) => {
    steps.push(step)
    onProgress({ kind: 'step', step })
  }

  const files = (request.collaterals ?? []).map(parseCollateralFile)
  const chain =
    deps.chain ?? (rpc === undefined ? undefined : await openChain(deps, { rpc, contract, chainId, manifests }))
  const loaded = await loadReceipt({ ...deps, onPhase }, { subject, gateways, api, chain })
  const receipt = readReceipt(loaded, subject)
  const finding = { ...deps, findBeside: (name: string) => findBeside(deps, loaded, name) }
  const { gateways: sources, proof } = loaded
  const parts = await loadParts({ ...finding, onFetch: () => onPhase('blocks') }, { receipt, gateways: sources })
  const cid = parts.collateral
  const fresh = cid === undefined ? undefined : chooseFreshCollateral(files, { cid, at })
  const collateral: LoadedCollateral =
    cid === undefined
      ? { bytes: undefined, problems: [] }
      : await loadCollateral({ ...finding, onFetch: () => onPhase('collateral') }, { cid, files, gateways: sources })

  onPhase('steps')
  const subjectStep = receipt && checkSubject(loaded.transaction, receipt)
  const check = await checkReceipt(loaded.bytes, collateral.bytes, {
    ...toCheckOptions(request, chain),
    isEventDue: isEventDue && (proof === undefined || proof.status === 'complete'),
    blocks: parts.blocks,
    ...(deps.verifier === undefined ? {} : { verifier: deps.verifier }),
    ...(opening === undefined ? {} : { opening }),
    ...(loaded.cid === undefined ? {} : { cid: loaded.cid }),
    ...(at === undefined || fresh === undefined ? {} : { reevaluation: { at, collateral: fresh.bytes } }),
    ...(revocations === undefined ? {} : { revocations: { list: revocations, at: at ?? deps.now() } }),
    onStep(step) {
      onStep(step)
      if (step.id === 'statement' && subjectStep !== undefined) onStep(subjectStep)
    },
  })
  if (subjectStep !== undefined && !steps.includes(subjectStep)) onStep(subjectStep)
  const judged = {
    ...check,
    verdict: subjectStep?.status === 'fail' ? 'failed' : check.verdict,
    isMockRefused: check.isMock && !allowMock,
  } as const
  const found = { ...judged, receipt, publications: chain?.publications }
  const claims = proof === undefined ? [] : compareClaims(proof, found)
  return {
    verdict: judged.verdict,
    isMock: check.isMock,
    isMockRefused: judged.isMockRefused,
    isKnownCode: check.isKnownCode,
    isNotListed: check.isNotListed && subjectStep?.status !== 'fail',
    isEventMissing: check.isEventMissing,
    timeBound: check.timeBound,
    cid: check.cid,
    conclusion: conclude({ ...judged, lies: findLies(claims) }),
    steps,
    receipt,
    view: check.view,
    policy: check.policy,
    logged: check.logged,
    content: opening && readContent(opening, check),
    bytes: loaded.bytes,
    blocks: parts.blocks,
    collateral: collateral.bytes && { bytes: collateral.bytes, name: collateral.name },
    publications: chain?.publications,
    proof,
    claims,
    problems: [...new Set([...parts.problems, ...collateral.problems])],
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

/** A receipt of version 1 is one block, and names its collateral itself. */
async function loadParts(
  deps: Parameters<typeof loadBlocks>[0],
  { receipt, gateways }: { receipt: AnyReceipt | undefined; gateways: readonly string[] },
): Promise<LoadedBlocks> {
  if (receipt?.version === ATTESTATION_V2) return loadBlocks(deps, { receipt, gateways })
  return { blocks: {}, collateral: receipt?.signer.collateral, problems: [] }
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

function toCheckOptions(request: VerifyRequest, chain: Chain | undefined): CheckReceiptOptions {
  const { manifests, tcbStatuses = [], maximumEventDelayS } = request
  return {
    roots: trustedRoots(),
    mockEntropyKeys: simulatedEntropyKeys(),
    anchors: { ...toAnchors(manifests), ...(chain === undefined ? {} : { contract: chain.contract }) },
    policy: toPolicy({ statuses: tcbStatuses, maximumEventDelayS }, manifests),
    ...(chain === undefined ? {} : { chain: chain.reader }),
  }
}
