import { createVerifier, vendorRoots } from '@countersign/attestation'
import { createSimulatedSatellite, simulatedRoots } from '@countersign/attestation/simulator'
import { ServiceError } from '@countersign/protocol'
import {
  type Anchors,
  type AttestationReceiptV1,
  type CheckReceiptOptions,
  canonicalBytes,
  checkReceipt,
  isCid,
  MAX_RECEIPT_BYTES,
  parseReceipt,
  type ReceiptCheck,
  toCid,
} from '@countersign/receipt'
import { type Chain, createChain, type Publication } from './createChain.ts'
import { VerificationError } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import { type FoundBlock, getBlock } from './getBlock.ts'
import { type Trust, toMeasurement } from './trust.ts'

export type SubjectFile = { name: string; bytes: Uint8Array<ArrayBuffer> }

/** What is to be verified, by the way it is named. */
export type VerificationSubject =
  /** A receipt, and perhaps its collateral, in any order. */
  | { kind: 'files'; files: readonly SubjectFile[] }
  | { kind: 'cid'; cid: string }
  | { kind: 'transaction'; txHash: string }

export type VerificationRequest = {
  subject: VerificationSubject
  trust: Trust
  gateways: readonly string[]
  /**
   * False where the service says that there is no event yet, or never will be. The chain is asked all the same, as that is
   * the word of the one who is judged: only the absence of an event is then no failure.
   */
  isEventDue: boolean
  /** The copy of the receipt in the service's answer: compared with the pinned bytes, never read. */
  statedReceipt?: unknown
}

export type Verification = ReceiptCheck & {
  bytes: Uint8Array<ArrayBuffer>
  collateral: Uint8Array<ArrayBuffer> | undefined
  /** The events of this wallet and transaction. Undefined where there was no chain to ask. */
  publications: readonly Publication[] | undefined
  /** The chain was asked and has no event, which is no failure as none was due. */
  isEventMissing: boolean
  /** Whether the stated copy is the pinned receipt. Undefined where there is none. */
  isStatedReceiptSame: boolean | undefined
  /** Which of the files were which. Undefined where there were none. */
  fileNames: { receipt: string; collateral: string | undefined } | undefined
  /** What could not be had, and why. */
  problems: readonly string[]
}

export type VerifySubjectDeps = { fetchBytes: FetchBytes; onProgress: (text: string) => void }

const MAX_COLLATERAL_BYTES = 8_388_608

/** Gathers all that a receipt is held against, and judges it with the code of the command-line verifier. */
export async function verifySubject(deps: VerifySubjectDeps, request: VerificationRequest): Promise<Verification> {
  const { subject, trust, gateways, isEventDue } = request
  const chain = trust.contract === undefined ? undefined : createChain(deps, trust.contract)
  const { bytes, cid, others, asked, name } = await loadReceipt(deps, { subject, gateways, chain })
  const receipt = tryParse(bytes)
  const collateral = await loadCollateral(deps, { receipt, files: others, gateways })

  deps.onProgress('Checking every step.')
  const roots = trust.allowMock ? [...vendorRoots, ...simulatedRoots()] : vendorRoots
  const options: CheckReceiptOptions = {
    roots,
    verifier: createVerifier({ roots }),
    // A simulated satellite is told as such in any case: its key is public.
    mockEntropyKeys: [createSimulatedSatellite().publicKey],
    anchors: toAnchors(trust),
    policy: { signer: { statuses: ['UpToDate', ...trust.tcbStatuses] } },
    ...(cid === undefined ? {} : { cid }),
    ...(chain === undefined ? {} : { chain: chain.reader }),
  }
  const asIfDue = await checkReceipt(bytes, collateral.bytes, options)
  const isEventMissing = !isEventDue && chain?.isWithoutEvent() === true
  const check = isEventMissing ? await checkWithoutEvent({ bytes, collateral: collateral.bytes, options }) : asIfDue
  const isOther = asked !== undefined && receipt !== undefined && receipt.transaction.txHash !== asked
  return {
    ...check,
    verdict: isOther ? 'failed' : check.verdict,
    bytes,
    collateral: collateral.bytes,
    publications: chain?.publications,
    isEventMissing,
    fileNames: name === undefined ? undefined : { receipt: name, collateral: collateral.name },
    isStatedReceiptSame: compareStated(request.statedReceipt, check.cid),
    problems: [
      ...(isOther ? [`The chain's event for ${asked} leads to the receipt of another transaction.`] : []),
      ...collateral.problems,
    ],
  }
}

/** Judged again, with an event that is not required. The rest of the chain's answers still counts. */
async function checkWithoutEvent(parameters: {
  bytes: Uint8Array
  collateral: Uint8Array | undefined
  options: CheckReceiptOptions
}): Promise<ReceiptCheck> {
  const { bytes, collateral, options } = parameters
  const { contract: _, ...anchors } = options.anchors ?? {}
  const check = await checkReceipt(bytes, collateral, { ...options, anchors })
  const detail = 'The contract has no event for this wallet and transaction, and the service says that none is due.'
  return { ...check, steps: check.steps.map((step) => (step.id === 'event' ? { ...step, detail } : step)) }
}

function toAnchors(trust: Trust): Anchors {
  const { configHashes, coordinatorMeasurements, coordinatorConfigHashes, entropyKeys, contract } = trust
  return {
    measurements: trust.measurements.map(toMeasurement),
    configHashes,
    coordinatorMeasurements,
    coordinatorConfigHashes,
    entropyKeys,
    ...(contract === undefined ? {} : { contract: contract.address }),
  }
}

type LoadedReceipt = {
  bytes: Uint8Array<ArrayBuffer>
  /** The CID that the bytes must have. */
  cid: string | undefined
  /** Files beside the receipt. */
  others: readonly SubjectFile[]
  /** Of the receipt's file. */
  name?: string
  /** The transaction that the receipt must be about. */
  asked?: string
}

async function loadReceipt(
  deps: VerifySubjectDeps,
  { subject, gateways, chain }: { subject: VerificationSubject; gateways: readonly string[]; chain: Chain | undefined },
): Promise<LoadedReceipt> {
  switch (subject.kind) {
    case 'files':
      return chooseReceipt(subject.files)
    case 'cid':
      return fetchReceipt(deps, { cid: subject.cid, gateways })
    case 'transaction': {
      if (chain === undefined) {
        throw new VerificationError(
          'chain_not_configured',
          'Only the chain knows which receipt a transaction has, and no contract and node are set here.',
        )
      }
      deps.onProgress('Asking the chain for the event of the transaction.')
      const cid = await chain.findReceiptCid(subject.txHash)
      return { ...(await fetchReceipt(deps, { cid, gateways })), asked: subject.txHash }
    }
  }
}

/** The one that looks like a receipt; alone, a file is taken for one whatever it looks like, so that its faults are told. */
function chooseReceipt(files: readonly SubjectFile[]): LoadedReceipt {
  const receipt = files.find(({ bytes }) => tryParse(bytes) !== undefined) ?? files.find(looksLikeReceipt) ?? files[0]
  if (receipt === undefined) throw new VerificationError('subject_invalid', 'There is no file to verify.')
  // A file that is named after a CID claims to be that block.
  const stem = receipt.name.replace(/\.json$/, '')
  const others = files.filter((file) => file !== receipt)
  return { bytes: receipt.bytes, cid: isCid(stem) ? stem : undefined, others, name: receipt.name }
}

function looksLikeReceipt({ bytes }: SubjectFile): boolean {
  return new TextDecoder().decode(bytes.subarray(0, MAX_RECEIPT_BYTES)).includes('"countersign-attestation/')
}

async function fetchReceipt(
  deps: VerifySubjectDeps,
  { cid, gateways }: { cid: string; gateways: readonly string[] },
): Promise<LoadedReceipt> {
  if (!isCid(cid)) throw new VerificationError('subject_invalid', `${cid} is not the CID of a receipt.`)
  deps.onProgress('Fetching the receipt by its CID.')
  const { bytes, problems } = await getBlock(deps, { cid, gateways, maxBytes: MAX_RECEIPT_BYTES })
  if (bytes === undefined) throw new VerificationError('receipt_unavailable', problems.join('; '))
  return { bytes, cid, others: [] }
}

async function loadCollateral(
  deps: VerifySubjectDeps,
  parameters: {
    receipt: AttestationReceiptV1 | undefined
    files: readonly SubjectFile[]
    gateways: readonly string[]
  },
): Promise<FoundBlock & { name?: string }> {
  const { receipt, files, gateways } = parameters
  if (receipt === undefined) return { bytes: undefined, problems: [] }
  const { collateral: cid } = receipt.signer
  for (const { bytes, name } of files) {
    // Editors add a line feed, and no block of collateral has white space around it.
    const found = [bytes, trimWhiteSpace(bytes)].find((candidate) => toCid(candidate) === cid)
    if (found !== undefined) return { bytes: found, name, problems: [] }
  }
  const problems = files.map(({ name }) => `${name} is not the collateral that the receipt names`)
  if (!isCid(cid)) return { bytes: undefined, problems }
  deps.onProgress('Fetching the collateral that the receipt names.')
  const block = await getBlock(deps, { cid, gateways, maxBytes: MAX_COLLATERAL_BYTES })
  return { bytes: block.bytes, problems: [...problems, ...block.problems] }
}

function trimWhiteSpace(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const isInk = (byte: number) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d
  const start = bytes.findIndex(isInk)
  return start < 0 ? new Uint8Array() : bytes.slice(start, bytes.findLastIndex(isInk) + 1)
}

function tryParse(bytes: Uint8Array): AttestationReceiptV1 | undefined {
  try {
    return parseReceipt(bytes)
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

function compareStated(stated: unknown, cid: string): boolean | undefined {
  if (stated === undefined || stated === null) return undefined
  try {
    return toCid(canonicalBytes(stated as AttestationReceiptV1)) === cid
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}
