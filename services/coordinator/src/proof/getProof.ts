import { hash } from 'node:crypto'
import { isSlug, type ProofPayload, type ProofStatus, type SignatureKind } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'
import type { Store } from '../ports.ts'
import type { Proof } from '../store/types.ts'

/** A payload as it is sent. Its version changes when anything in it does. */
export type ProofView = { status: ProofStatus; body: string; version: string }

export type GetProofDeps = { store: Pick<Store, 'findProof'>; ipfsGatewayUrl: string | undefined }

/** `GET /proof/:slug`. Throws `proof_not_found`, alike for what is no slug and what is no proof. */
export async function getProof(deps: GetProofDeps, { slug }: { slug: string }): Promise<ProofView> {
  const proof = isSlug(slug) ? await deps.store.findProof(slug) : undefined
  if (proof === undefined) throw proofNotFound()
  return toProofView(proof, deps.ipfsGatewayUrl)
}

export function proofNotFound() {
  return new CoordinatorError('proof_not_found', 'there is no such proof')
}

export function toProofView(proof: Proof, ipfsGatewayUrl: string | undefined): ProofView {
  const body = JSON.stringify(toProofPayload(proof, ipfsGatewayUrl))
  return { status: proof.status, body, version: hash('sha256', body, 'base64url') }
}

/** The nulls of specification §2 and §3, whatever a row holds already: frozen bytes are no published receipt. */
function toProofPayload(proof: Proof, ipfsGatewayUrl: string | undefined): ProofPayload {
  const isPinned = proof.status !== 'pending_pin' && proof.status !== 'pin_failed'
  const ipfsCid = isPinned ? proof.ipfsCid : null
  return {
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
    receipt: isPinned ? proof.receipt : null,
    createdAt: new Date(proof.createdAt).toISOString(),
  }
}

/** Transactions have no such member: specification §2 fixes theirs. */
function toKindMember(kind: SignatureKind): Pick<ProofPayload, 'kind'> {
  return kind === 'transaction' ? {} : { kind }
}

function toIpfsUrl(cid: string, gatewayUrl: string | undefined): string {
  return gatewayUrl === undefined ? `ipfs://${cid}` : `${gatewayUrl.replace(/\/+$/, '')}/ipfs/${cid}`
}
