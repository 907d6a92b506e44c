import { type TrustedRoot, vendorRoots } from '@countersign/attestation'
import {
  createConfigfsReportSource,
  createPcsClient,
  createSimulatedReportSource,
  type ReportSource,
} from '@countersign/evidence'
import type { Log } from '@countersign/service'
import type { WarnOf } from '../publish/webhook/createWarner.ts'
import {
  type CollateralStore,
  createCollateralStore,
  createSimulatedCollateralStore,
} from '../sign/enclave/collateral/collateralStore.ts'
import type { CollateralCache } from '../store/collateralCache.ts'
import type { Clock } from '../system.ts'

export type Hardware = {
  roots: readonly TrustedRoot[]
  reportSource: ReportSource
  collateral: CollateralStore
}

/** Real or simulated hardware. The simulator's code is loaded only in mock mode. */
export async function createHardware(
  deps: { clock: Clock; log: Log; warnOf: WarnOf; collateralCache: CollateralCache },
  { isMock, collateralUrl }: { isMock: boolean; collateralUrl: string },
): Promise<Hardware> {
  const { clock, log, warnOf, collateralCache: cache } = deps
  if (!isMock) {
    const pcs = createPcsClient({ url: collateralUrl })
    return {
      roots: vendorRoots,
      reportSource: createConfigfsReportSource(),
      collateral: createCollateralStore({
        fetchCollateral: pcs.fetchCollateral,
        roots: vendorRoots,
        clock,
        log,
        cache,
        onLapsing: ({ fmspc, ca }, lapsesAt) =>
          void warnOf('collateral.lapsing', { fmspc, ca, lapsesAt: lapsesAt.toISOString() }),
      }),
    }
  }
  const { createSimulator, simulatedRoots } = await import('@countersign/attestation/simulator')
  return {
    roots: simulatedRoots(),
    reportSource: createSimulatedReportSource({
      simulator: createSimulator({ at: new Date(clock.now()) }),
      latencyMs: 0,
    }),
    collateral: createSimulatedCollateralStore({ simulatorFactory: (at) => createSimulator({ at }), clock }),
  }
}
