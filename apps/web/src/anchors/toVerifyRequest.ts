import type { VerifyRequest } from '@countersign/verify'
import type { WebConfig } from '../config.ts'
import { findContract, type Trust } from './trust.ts'

export type ToVerifyRequestParameters = Pick<VerifyRequest, 'subject' | 'collaterals'> & {
  /** Of an off-chain signature. */
  opening?: Uint8Array | undefined
  apiBaseUrl: string
}

/** A subject, held against these anchors. */
export function toVerifyRequest(
  { subject, collaterals = [], opening, apiBaseUrl }: ToVerifyRequestParameters,
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
  }
}
