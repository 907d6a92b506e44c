import type { ProofPayload } from '@countersign/protocol'
import type { VerifyRequest } from '@countersign/verify'
import type { WebConfig } from '../config.ts'
import { findContract, type Trust } from './trust.ts'

export type ToVerifyRequestParameters = Pick<VerifyRequest, 'subject' | 'collaterals'> & {
  /** Of an off-chain signature. */
  opening?: Uint8Array | undefined
  /** The service's answer, where the receipt is reached through one. */
  proof?: ProofPayload | undefined
  apiBaseUrl: string
}

/** A subject, held against these anchors. */
export function toVerifyRequest(
  { subject, collaterals = [], opening, proof, apiBaseUrl }: ToVerifyRequestParameters,
  { trust, config }: { trust: Trust; config: WebConfig },
): VerifyRequest {
  const { manifest, allowMock, tcbStatuses, node } = trust
  return {
    subject,
    collaterals,
    ...(opening === undefined ? {} : { opening }),
    manifests: [manifest],
    gateways: config.ipfsGatewayUrl === undefined ? [] : [config.ipfsGatewayUrl],
    api: apiBaseUrl,
    ...(node === undefined || findContract(trust) === undefined ? {} : { rpc: node.rpcUrl, chainId: node.chainId }),
    tcbStatuses,
    allowMock,
    isEventDue: isEventDue(proof),
  }
}

/** The service says when a proof has its event; without a proof one is expected. */
export function isEventDue(proof: ProofPayload | undefined): boolean {
  return proof === undefined || proof.status === 'complete'
}
