import { readFileSync } from 'node:fs'
import { createVerifier, type Verifier } from '@countersign/attestation'
import { createKdsClient } from '@countersign/evidence'
import type { Log } from '@countersign/service'
import type { Config } from '../config.ts'
import type { WarnOf } from '../publish/webhook/createWarner.ts'
import {
  type CollateralStore,
  createPlatformReader,
  type PlatformReader,
} from '../sign/enclave/collateral/collateralStore.ts'
import type { EnclaveEndpointDeps } from '../sign/enclave/enclaveEndpoint.ts'
import { createSelfReport } from '../sign/enclave/health/selfReport.ts'
import { createSnpCertificates } from '../sign/enclave/health/snpCertificates.ts'
import { createSnpRevocations } from '../sign/enclave/health/snpRevocations.ts'
import type { CollateralCache } from '../store/collateralCache.ts'
import type { Clock, Random } from '../system.ts'
import { createHardware } from './hardware.ts'

/** What judges enclaves, and what introduces this coordinator to them. */
export type Attestation = {
  verifier: Verifier
  collateral: CollateralStore
  readPlatform: PlatformReader
  selfReport: ReturnType<typeof createSelfReport>
  /** For each enclave of the settings. */
  endpointDeps: Omit<EnclaveEndpointDeps, 'connections' | 'rootSecrets'>
}

/** Made from the settings, real or simulated. The first report of its own is there, or has failed, when this resolves. */
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
