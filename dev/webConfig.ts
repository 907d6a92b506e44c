import type { StackAnchors } from '@countersign/testing/stack'
import type { WebConfig } from '../apps/web/src/config.ts'
import type { Trust } from '../apps/web/src/verification/trust.ts'
import type { DevChain } from './chain.ts'

export type CreateWebConfigParameters = {
  /** Of the coordinator. */
  publicUrl: string
  chain: Pick<DevChain, 'url' | 'chainId' | 'contract'>
  anchors: StackAnchors
}

/** The configuration of the local web app. It trusts this stack alone, and calls it MOCK. */
export function createWebConfig(parameters: CreateWebConfigParameters): WebConfig & { trust: Trust } {
  const { publicUrl, chain, anchors } = parameters
  const { url: rpcUrl, chainId, contract: address } = chain
  return {
    apiBaseUrl: publicUrl,
    chainId,
    rpcUrl,
    chainName: 'Local chain',
    faucetUrl: `${rpcUrl}/faucet`,
    // The coordinator is its own gateway.
    ipfsGatewayUrl: publicUrl,
    attestations: { chainId, rpcUrl, address },
    trust: {
      allowMock: true,
      measurements: [anchors.measurement],
      configHashes: [anchors.configHash],
      coordinatorMeasurements: [anchors.coordinatorMeasurement],
      coordinatorConfigHashes: [anchors.coordinatorConfigHash],
      entropyKeys: [anchors.entropyKey],
      tcbStatuses: [],
      contract: { address, chainId, rpcUrl, fromBlock: 0 },
    },
  }
}
