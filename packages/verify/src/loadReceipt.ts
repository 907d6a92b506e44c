import { MAX_BLOCK_BYTES, type ProofPayload, ServiceError } from '@countersign/protocol'
import { isCid, MAX_RECEIPT_BYTES, parseAnyReceipt, parseReceiptCar } from '@countersign/receipt'
import type { Chain } from './createChain.ts'
import { type ReaderNeed, VerifierError, withSource } from './errors.ts'
import type { FetchBytes } from './fetchBytes.ts'
import { getBlock, orderGateways } from './getBlock.ts'
import { getProof } from './getProof.ts'
import type { GivenFile } from './loadParts.ts'

/** The receipt to verify. */
export type Subject =
  /** A receipt, or a CAR with its blocks. */
  | { kind: 'file'; name: string; bytes: Uint8Array<ArrayBuffer> }
  /** `link` is a link at a gateway, which is used after the reader's own gateways. */
  | { kind: 'cid'; cid: string; link?: string }
  | { kind: 'transaction'; txHash: string }
  /** `proof` is the service's response, if the caller already has it. */
  | { kind: 'proof'; slug: string; api: string; proof?: ProofPayload }

/** The current activity, for display. */
export type Phase = 'chain' | 'proof' | 'receipt' | 'blocks' | 'collateral' | 'steps'

export type LoadReceiptParameters = {
  subject: Subject
  /** The reader's gateways, which come first. */
  gateways: readonly string[]
  /** The service, which is also a gateway. */
  api: string | undefined
  chain: Chain | undefined
}

export type LoadedReceipt = {
  bytes: Uint8Array<ArrayBuffer>
  /** A file name or CID, for messages. */
  name: string
  /** The CID that the reader, the proof, the event or the anchor named. */
  cid: string | undefined
  /** The transaction that the reader, the proof, the event or the anchor named. */
  transaction: NamedTransaction | undefined
  /** The service's response, if the receipt was named by a proof. */
  proof: ProofPayload | undefined
  /** Blocks from the receipt's CAR file. */
  carried: readonly Uint8Array<ArrayBuffer>[]
  /** Gateways for the blocks that the receipt names. */
  gateways: readonly string[]
}

export type NamedTransaction = { txHash: string; chainId?: number; walletAddress?: string }

type LoadDeps = { fetchBytes: FetchBytes; onPhase: (phase: Phase) => void }

/** Loads the bytes of a receipt. Uses no public gateway unless the reader names it. */
export async function loadReceipt(deps: LoadDeps, parameters: LoadReceiptParameters): Promise<LoadedReceipt> {
  const { subject, api, chain } = parameters
  const link = subject.kind === 'cid' ? subject.link : undefined
  const gateways = orderGateways({ own: parameters.gateways, ipfsUrl: link, api })
  switch (subject.kind) {
    case 'file': {
      const { name } = subject
      return { ...readFile(subject), name, cid: toNamedCid(name), transaction: undefined, proof: undefined, gateways }
    }
    case 'cid':
      return fetchReceipt(deps, { cid: subject.cid, gateways, transaction: undefined, proof: undefined })
    case 'transaction': {
      const { txHash } = subject
      const { cid, wallet } = await findPublished(deps, { chain, txHash, gateways })
      const transaction = { txHash, ...(wallet === undefined ? {} : { walletAddress: wallet }) }
      return fetchReceipt(deps, { cid, gateways, transaction, proof: undefined })
    }
    case 'proof':
      return loadFromProof(deps, subject, parameters.gateways)
  }
}

function readFile(file: Extract<Subject, { kind: 'file' }>): Pick<LoadedReceipt, 'bytes' | 'carried'> {
  if (!isCar(file)) return { bytes: file.bytes, carried: [] }
  const { bytes, collateral, blocks } = withSource(file.name, () => parseReceiptCar(file.bytes))
  const carried = [collateral, ...Object.values(blocks)].filter((block) => block !== undefined)
  // Copies, so that a block doesn't keep the whole file in memory.
  return { bytes: Uint8Array.from(bytes), carried: carried.map((block) => Uint8Array.from(block)) }
}

/** A file name that is a CID claims to be that block, or a CAR file of it. */
function toNamedCid(name: string): string | undefined {
  const stem = name.replace(/^.*[/\\]/s, '').replace(/\.(?:json|car)$/, '')
  return isCid(stem) ? stem : undefined
}

async function findPublished(
  deps: LoadDeps,
  { chain, txHash, gateways }: { chain: Chain | undefined; txHash: string; gateways: readonly string[] },
): Promise<{ cid: string; wallet?: string }> {
  if (chain === undefined) {
    throw invalid('a transaction hash needs a node and a contract', 'only the chain knows its receipt', 'node')
  }
  deps.onPhase('chain')
  const found = await chain.findReceipt(txHash, (cid) => getBlock(deps, { cid, gateways, maxBytes: MAX_BLOCK_BYTES }))
  if (isCid(found.cid)) return found
  throw new VerifierError('fetch_failed', 'could not fetch', {
    details: `the chain points to ${found.cid}, which is not the CID of a receipt`,
  })
}

async function loadFromProof(
  deps: LoadDeps,
  subject: Extract<Subject, { kind: 'proof' }>,
  own: readonly string[],
): Promise<LoadedReceipt> {
  const { slug, api } = subject
  if (subject.proof === undefined) deps.onPhase('proof')
  const proof = subject.proof ?? (await getProof(deps, { api, slug }))
  const { ipfsCid, txHash, chainId, walletAddress, ipfsUrl } = proof
  if (ipfsCid === null) throw notPinned(proof)
  if (!isCid(ipfsCid)) {
    throw new VerifierError('fetch_failed', 'could not fetch', {
      details: `${new URL(api).host} returned a proof with an invalid ipfsCid`,
    })
  }
  const gateways = orderGateways({ own, ipfsUrl, api })
  const transaction = { txHash: txHash.toLowerCase(), chainId, walletAddress: walletAddress.toLowerCase() }
  return fetchReceipt(deps, { cid: ipfsCid, gateways, transaction, proof })
}

function notPinned({ status }: ProofPayload) {
  const details =
    status === 'pin_failed'
      ? 'the service failed to pin it (pin_failed); only its operator can export it'
      : `the service is still publishing it (${status}); try again in a minute`
  return new VerifierError('proof_not_pinned', 'the receipt is not published', { details })
}

/** Fetches only from gateways. The copy in the service's response is a claim. */
async function fetchReceipt(
  deps: LoadDeps,
  parameters: Pick<LoadedReceipt, 'gateways' | 'transaction' | 'proof'> & { cid: string },
): Promise<LoadedReceipt> {
  const { cid, gateways } = parameters
  if (!isCid(cid)) throw invalid('not the CID of a receipt', cid)
  if (gateways.length === 0) throw invalid('a CID needs a gateway', 'there is no default', 'gateway')
  deps.onPhase('receipt')
  const { bytes, problems } = await getBlock(deps, { cid, gateways, maxBytes: MAX_RECEIPT_BYTES })
  if (bytes !== undefined) return { ...parameters, bytes, name: cid, carried: [] }
  throw new VerifierError('fetch_failed', 'could not fetch the receipt', {
    details: `${problems.join('; ')}; requested CID ${cid}`,
  })
}

function invalid(message: string, details: string, need?: ReaderNeed) {
  return new VerifierError('invalid_arguments', message, { details, ...(need && { need }) })
}

/** Whether a file is a CAR file, by its name or by its first bytes, which JSON can't start with. */
export function isCar({ name, bytes }: GivenFile): boolean {
  return /\.car$/i.test(name) || (bytes[0] === 0x3a && bytes[1] === 0xa2)
}

/** Chooses the receipt among files. The others should be collateral. A single file counts as a receipt, so that its faults are reported. */
export function chooseReceipt(files: readonly GivenFile[]): { subject: Subject; collaterals: GivenFile[] } {
  const receipt = files.find(isReceipt) ?? files.find(looksLikeReceipt) ?? files[0]
  if (receipt === undefined) throw new VerifierError('invalid_arguments', 'there is no file to verify')
  return { subject: { kind: 'file', ...receipt }, collaterals: files.filter((file) => file !== receipt) }
}

function isReceipt(file: GivenFile): boolean {
  if (isCar(file)) return true
  try {
    parseAnyReceipt(file.bytes)
    return true
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}

function looksLikeReceipt({ bytes }: GivenFile): boolean {
  return new TextDecoder().decode(bytes.subarray(0, MAX_RECEIPT_BYTES)).includes('"countersign-attestation/')
}
