import type { StackAnchors } from '@countersign/testing/stack'
import { emptyManifest, type Manifest, parseMinimumTcbTexts } from '@countersign/verify'
import type { WebConfig } from '../apps/web/src/config.ts'
import type { DevChain } from './chain.ts'
import { TEST_TOKEN } from './testToken.ts'

export type CreateWebConfigParameters = {
  /** Of the coordinator. */
  publicUrl: string
  chain: Pick<DevChain, 'url' | 'chainId' | 'contract'>
  anchors: StackAnchors
}

/** The configuration of the local web app. It trusts this stack alone, and calls it MOCK. */
export function createWebConfig(parameters: CreateWebConfigParameters): WebConfig & { trust: Manifest } {
  const { publicUrl, chain, anchors } = parameters
  const { url: rpcUrl, chainId, contract: address } = chain
  const minimumTcb = parseMinimumTcbTexts([anchors.coordinatorTcb])
  return {
    apiBaseUrl: publicUrl,
    chainId,
    rpcUrl,
    chainName: 'Local chain',
    faucetUrl: `${rpcUrl}/faucet`,
    // The coordinator is its own gateway.
    ipfsGatewayUrl: publicUrl,
    tokens: [{ chainId, ...TEST_TOKEN }],
    attestations: { chainId, rpcUrl, address },
    allowMock: true,
    trust: {
      ...emptyManifest,
      enclave: { measurements: [anchors.measurement], configHashes: [anchors.configHash] },
      coordinator: {
        measurements: [anchors.coordinatorMeasurement],
        configHashes: [anchors.coordinatorConfigHash],
        ...(minimumTcb === undefined ? {} : { minimumTcb }),
      },
      entropyKeys: [anchors.entropyKey],
    },
  }
}
