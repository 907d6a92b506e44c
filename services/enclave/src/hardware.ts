import { type Collateral, type TrustedRoot, vendorRoots } from '@countersign/attestation/core'
import {
  createConfigfsQuoteSource,
  createDstackQuoteSource,
  createPcsClient,
  createSimulatedQuoteSource,
  type Platform,
  type QuoteSource,
} from '@countersign/evidence/core'
import type { Config } from './config.ts'
import type { Clock } from './ports.ts'

export type Hardware = {
  quoteSource: QuoteSource
  /** For callers' reports. Includes simulated roots only if this enclave is simulated. */
  callerRoots: readonly TrustedRoot[]
  /** For other enclaves' quotes: only the roots of the same kind of silicon. */
  peerRoots: readonly TrustedRoot[]
  fetchCollateral(platform: Platform): Promise<Collateral>
}

/** The quote source, trusted roots and collateral of this machine, real or simulated. */
export async function createHardware({ quoteSource: source, rootSecret }: Config, clock: Clock): Promise<Hardware> {
  if (source.kind !== 'mock') {
    const pcs = rootSecret.kind === 'attested' ? createPcsClient({ url: rootSecret.collateralUrl }) : undefined
    return {
      quoteSource: source.kind === 'configfs' ? createConfigfsQuoteSource() : createDstackQuoteSource(source),
      callerRoots: vendorRoots,
      peerRoots: vendorRoots,
      async fetchCollateral(platform) {
        if (pcs === undefined) throw new Error('no collateral is needed for this root secret')
        return pcs.fetchCollateral(platform)
      },
    }
  }
  // Imported only here, so that a production enclave never loads the simulator.
  const { createSimulator, simulatedRoots } = await import('@countersign/attestation/simulator')
  const simulator = createSimulator({ at: new Date(clock.now()) })
  return {
    quoteSource: createSimulatedQuoteSource({ simulator, latencyMs: source.latencyMs }),
    callerRoots: [...vendorRoots, ...simulatedRoots()],
    peerRoots: [simulator.intelRoot],
    fetchCollateral: async () => createSimulator({ at: new Date(clock.now()) }).collateral(),
  }
}
