import { hash } from 'node:crypto'
import type { ProofPayload, ProofStatus, SignatureKind } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Proof, ProofState } from '../store/proofs.ts'

/** A payload as it is sent. Its version changes when anything in it does. */
export type ProofView = {
  status: ProofStatus
  isFinal: boolean
  /**
   * A character for each byte (latin1). A string is in V8's heap: buffers that are kept for long would be scattered over the C heap,
   * between those of sockets, so that it never shrinks.
   */
  latin1: string
  version: string
}

export function toProofView(proof: Proof, ipfsGatewayUrl: string | undefined): ProofView {
  const bytes = toBytes(proof, ipfsGatewayUrl)
  const version = hash('sha256', bytes, 'base64url')
  return { status: proof.status, isFinal: proof.isFinal, latin1: bytes.toString('latin1'), version }
}

/** The nulls of specification §2 and §3, whatever a row holds already: frozen bytes are no published receipt. */
function toBytes(proof: Proof, ipfsGatewayUrl: string | undefined): Buffer {
  const isPinned = proof.status !== 'pending_pin' && proof.status !== 'pin_failed'
  const ipfsCid = isPinned ? proof.ipfsCid : null
  const before: Omit<ProofPayload, 'receipt' | 'createdAt'> = {
    slug: proof.slug,
    ...toKindMember(proof.kind),
    txHash: proof.txHash,
    chainId: proof.chainId,
    walletAddress: proof.walletAddress,
    status: proof.status,
    ipfsCid,
    ipfsUrl: ipfsCid === null ? null : toIpfsUrl(ipfsCid, ipfsGatewayUrl),
    onchainTxHash: isPinned ? proof.onchainTxHash : null,
    onchainBlockNumber: proof.status === 'complete' ? proof.onchainBlockNumber : null,
    kmsQuoteVerified: proof.kmsQuoteVerified,
  }
  const after: Pick<ProofPayload, 'createdAt'> = { createdAt: new Date(proof.createdAt).toISOString() }
  // Canonical JSON is what writing it again would give.
  return Buffer.concat([
    Buffer.from(`${JSON.stringify(before).slice(0, -1)},"receipt":`),
    (isPinned && proof.receipt) || NULL,
    Buffer.from(`,${JSON.stringify(after).slice(1)}`),
  ])
}

const NULL = Buffer.from('null')

/** Transactions have no such member: specification §2 fixes theirs. */
function toKindMember(kind: SignatureKind): Pick<ProofPayload, 'kind'> {
  return kind === 'transaction' ? {} : { kind }
}

function toIpfsUrl(cid: string, gatewayUrl: string | undefined): string {
  return gatewayUrl === undefined ? `ipfs://${cid}` : `${gatewayUrl.replace(/\/+$/, '')}/ipfs/${cid}`
}

/** All that ever changes of a row. */
export function toStateKey({ status, ipfsCid, onchainTxHash, onchainBlockNumber, isFinal }: ProofState): string {
  return JSON.stringify([status, ipfsCid, onchainTxHash, onchainBlockNumber, isFinal])
}

export function proofNotFound() {
  return new CoordinatorError('proof_not_found', 'there is no such proof')
}
