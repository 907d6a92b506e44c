import { parseQuote } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { toHex } from '@countersign/protocol'
import type { WebConfig } from '../apps/web/src/config.ts'
import type { Trust } from '../apps/web/src/verification/trust.ts'
import type { DevChain } from './chain.ts'

export type CreateWebConfigParameters = {
  /** Of the coordinator. */
  publicUrl: string
  chain: Pick<DevChain, 'url' | 'chainId' | 'contract'>
  /** What the enclave said of itself when it started. */
  enclave: Readonly<Record<string, unknown>>
  /** The coordinator's answer at `/health/attestation`. */
  coordinator: Readonly<Record<string, unknown>>
  satellite: { publicKey: string }
}

/**
 * What the local web app is told. It trusts this stack alone, and calls it MOCK: the values come from the services themselves,
 * which is right for one's own machine and for nothing else.
 */
export function createWebConfig(parameters: CreateWebConfigParameters): WebConfig & { trust: Trust } {
  const { publicUrl, chain, enclave, coordinator, satellite } = parameters
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
      measurements: [measureSimulatedEnclave()],
      configHashes: [String(enclave.configHash)],
      coordinatorMeasurements: [String(coordinator.measurement)],
      coordinatorConfigHashes: [String(coordinator.configHash)],
      entropyKeys: [satellite.publicKey],
      tcbStatuses: [],
      contract: { address, chainId, rpcUrl, fromBlock: 0 },
    },
  }
}

/** The enclave tells nobody but the coordinator; every simulated one has the same measurement. */
function measureSimulatedEnclave(): string {
  const quote = createSimulator({ at: new Date() }).quote({ reportData: new Uint8Array(64) })
  const { body } = parseQuote(Uint8Array.from(quote))
  return [body.mrTd, ...body.rtmrs].map(toHex).join(':')
}
