import { hash } from 'node:crypto'
import type { ProofPayload, ProofStatus, SignatureKind } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Proof, ProofState } from '../store/proofs.ts'

/** A serialized payload. Its version changes whenever the payload does. */
export type ProofView = {
  status: ProofStatus
  isFinal: boolean
  /**
   * One character per byte (latin1). As a string it is in V8's heap. Long-lived buffers would fragment the C heap, which would then never
   * shrink.
   */
  latin1: string
  version: string
}

export function toProofView(proof: Proof, ipfsGatewayUrl: string | undefined): ProofView {
  const bytes = toBytes(proof, ipfsGatewayUrl)
  const version = hash('sha256', bytes, 'base64url')
  return { status: proof.status, isFinal: proof.isFinal, latin1: bytes.toString('latin1'), version }
}

/**
 * Members that specification §2 and §3 define as null stay null, even if the row has a value already: bytes that are not pinned yet are not a
 * published receipt.
 */
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
    ...(proof.anchor && { anchor: proof.anchor }),
    kmsQuoteVerified: proof.kmsQuoteVerified,
  }
  const after: Pick<ProofPayload, 'createdAt'> = { createdAt: new Date(proof.createdAt).toISOString() }
  // Inserts the stored bytes. Serializing the receipt again would give the same, because they are canonical JSON.
  return Buffer.concat([
    Buffer.from(`${JSON.stringify(before).slice(0, -1)},"receipt":`),
    (isPinned && proof.receipt) || NULL,
    Buffer.from(`,${JSON.stringify(after).slice(1)}`),
  ])
}

const NULL = Buffer.from('null')

/** Specification §2 fixes the members for transactions, so they have no `kind`. */
function toKindMember(kind: SignatureKind): Pick<ProofPayload, 'kind'> {
  return kind === 'transaction' ? {} : { kind }
}

function toIpfsUrl(cid: string, gatewayUrl: string | undefined): string {
  return gatewayUrl === undefined ? `ipfs://${cid}` : `${gatewayUrl.replace(/\/+$/, '')}/ipfs/${cid}`
}

/** All values of a row that can change. */
export function toStateKey({ status, ipfsCid, onchainTxHash, onchainBlockNumber, isFinal }: ProofState): string {
  return JSON.stringify([status, ipfsCid, onchainTxHash, onchainBlockNumber, isFinal])
}

export function proofNotFound() {
  return new CoordinatorError('proof_not_found', 'no such proof')
}
