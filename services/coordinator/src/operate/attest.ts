import { readFileSync } from 'node:fs'
import { createVerifier, type TrustedRoot, type Verifier, vendorRoots } from '@countersign/attestation'
import {
  createConfigfsReportSource,
  createKdsClient,
  createPcsClient,
  createSimulatedReportSource,
  type ReportSource,
} from '@countersign/evidence'
import type { Log } from '@countersign/service'
import type { Config } from '../config.ts'
import type { WarnOf } from '../publish/webhook/warner.ts'
import {
  type CollateralStore,
  createCollateralStore,
  createPlatformReader,
  createSimulatedCollateralStore,
  type PlatformReader,
} from '../sign/enclave/collateral/collateralStore.ts'
import type { EnclaveEndpointDeps } from '../sign/enclave/enclaveEndpoint.ts'
import { createSelfReport } from '../sign/enclave/health/selfReport.ts'
import { createSnpCertificates } from '../sign/enclave/health/snpCertificates.ts'
import { createSnpRevocations } from '../sign/enclave/health/snpRevocations.ts'
import type { CollateralCache } from '../store/collateralCache.ts'
import type { Clock, Random } from '../system.ts'

/** Verifies enclaves, and attests this coordinator to them. */
export type Attestation = {
  verifier: Verifier
  collateral: CollateralStore
  readPlatform: PlatformReader
  selfReport: ReturnType<typeof createSelfReport>
  /** Passed to the endpoint of each enclave. */
  endpointDeps: Omit<EnclaveEndpointDeps, 'connections' | 'rootSecrets'>
}

/** Uses real or simulated hardware, as the settings say. Resolves after the first attempt to create the coordinator's report. */
export async function createAttestation(
  deps: { clock: Clock; random: Random; log: Log; warnOf: WarnOf; collateralCache: CollateralCache },
  config: Config,
): Promise<Attestation> {
  const { clock, random, log } = deps
  const { roots, reportSource, collateral } = await createHardware(deps, config)
  const verifier = createVerifier({ roots })
  const readPlatform = createPlatformReader()
  const pem = config.snpCertsFile === undefined ? {} : { pem: readFileSync(config.snpCertsFile, 'utf8') }
  const kds = config.isMock ? {} : { kds: createKdsClient() }
  const selfReport = createSelfReport({
    reportSource,
    certificates: createSnpCertificates({ verifier, ...pem, ...kds, log }),
    revocations: createSnpRevocations({ verifier, ...kds, log }),
    configHash: config.configHash,
    clock,
    log,
  })
  await selfReport.ready()
  const endpointDeps = {
    caller: selfReport,
    callerAttestation: () => {
      const { selfAttestation, revocations } = selfReport.current()
      const { reportHex: report, certificates, configHash } = selfAttestation
      return { report, certificates, configHash, ...(revocations === undefined ? {} : { revocations }) }
    },
    verifier,
    collateral,
    readPlatform,
    policy: config.enclavePolicy,
    isMock: config.isMock,
    clock,
    random,
    log,
  }
  return { verifier, collateral, readPlatform, selfReport, endpointDeps }
}

type Hardware = {
  roots: readonly TrustedRoot[]
  reportSource: ReportSource
  collateral: CollateralStore
}

/** Loads the simulator's code only in mock mode. */
async function createHardware(
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
