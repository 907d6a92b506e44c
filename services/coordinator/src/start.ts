import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { createVerifier, type TrustedRoot, vendorRoots } from '@countersign/attestation'
import {
  createConfigfsReportSource,
  createKdsClient,
  createPcsClient,
  createSimulatedReportSource,
  type ReportSource,
} from '@countersign/evidence'
import packageJson from '../package.json' with { type: 'json' }
import { createDrandSource } from './entropy/drand.ts'
import { createHttpEnclave } from './enclave/httpEnclave.ts'
import { createOidcProvider } from './auth/oidc.ts'
import { createOrbitportSource } from './entropy/orbitport.ts'
import { createSatelliteSource } from './entropy/satellite.ts'
import { createApp } from './app.ts'
import type { Chain } from './chain/chain.ts'
import { createCollateralStore } from './collateral/collateralStore.ts'
import { platformOf } from './collateral/platformOf.ts'
import { createSimulatedCollateralStore } from './collateral/simulatedCollateralStore.ts'
import { type Config, readConfig } from './config.ts'
import { createReadAhead } from './entropy/readAhead.ts'
import { CoordinatorError } from './errors.ts'
import { createSelfReport } from './health/selfReport.ts'
import { createSnpCertificates } from './health/snpCertificates.ts'
import { createHttpServer } from './http/createHttpServer.ts'
import type { Log } from './http/log.ts'
import type { Pinner } from './ipfs/pinner.ts'
import { createMetrics } from './metrics.ts'
import type { CollateralStore, Entropy, EntropySource, IdentityProvider, KeyEnclave } from './ports.ts'
import type { RunningService } from './runService.ts'
import { createSignatureChecker } from './sign/checkSignatures.ts'
import { createCommitter } from './sign/commit.ts'
import { createGatherer } from './sign/gather.ts'
import { type SignDeps, type SignDigestRequest, type SignDigestResult, signDigests } from './sign/signDigest.ts'
import { createBatchVerifier } from './sign/verifyBatch.ts'
import { openStores, type PipelineStore } from './store/openStore.ts'
import type { Store } from './store/types.ts'

/** Calls that wait for the enclave at one time; what comes meanwhile gathers. */
const ENCLAVE_SLOTS = 8
const PIPELINE_START_MS = 200

const clock = { now: () => Date.now() }
const random = (length: number) => new Uint8Array(randomBytes(length))

/** Silicon, real or simulated. The simulator's code is loaded only in mock mode. */
async function createHardware(
  config: Config,
  log: Log,
): Promise<{
  roots: readonly TrustedRoot[]
  reportSource: ReportSource
  collateral: CollateralStore
}> {
  if (!config.isMock) {
    const pcs = createPcsClient({ url: config.collateralUrl })
    return {
      roots: vendorRoots,
      reportSource: createConfigfsReportSource(),
      collateral: createCollateralStore({ fetchCollateral: pcs.fetchCollateral, roots: vendorRoots, clock, log }),
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

function createEntropySource({ entropy }: Config): EntropySource {
  if (entropy.kind === 'drand') return createDrandSource({ url: entropy.url, fetch })
  if (entropy.kind === 'orbitport') {
    const { url, authUrl: tokenUrl, clientId, clientSecret } = entropy
    return createOrbitportSource({ url, tokenUrl, clientId, clientSecret, fetch, clock })
  }
  return createSatelliteSource({ url: entropy.url, fetch })
}

function createProviders({ providers, app }: Config): Map<string, IdentityProvider> {
  const entries = providers.map(({ id, issuer, clientId, clientSecret }) => {
    const redirectUri = `${app.publicUrl}/auth/${id}/callback`
    const allowInsecure = issuer.startsWith('http:')
    return [id, createOidcProvider({ issuer, clientId, clientSecret, redirectUri, allowInsecure })] as const
  })
  return new Map(entries)
}

/** What tests may put something between: each takes the place of the original. */
export type Parts = {
  store: Store
  pipeline: PipelineStore
  entropy: Entropy
  enclave: KeyEnclave
  pinner: Pinner
  chain: Chain
}
export type Decorate = <Name extends keyof Parts>(name: Name, part: Parts[Name]) => Parts[Name]

/** Builds everything from the environment, and serves. The only function that knows everyone. */
export async function startCoordinator(
  env: Readonly<Record<string, string | undefined>>,
  { log, decorate = (_, part) => part }: { log: Log; decorate?: Decorate },
): Promise<RunningService> {
  const config = readConfig(env, {
    readFile: (path) => readFileSync(path, 'utf8'),
    version: packageJson.version,
  })
  if (config.isMock) log.warn({ msg: 'Started with MOCK attestation: its proofs prove nothing about hardware' })
  // A thread of its own, so it loads while the database opens.
  const signaturesStarting = createSignatureChecker()
  signaturesStarting.catch(() => {})
  const opened = await openStores({
    databaseUrl: config.databaseUrl,
    dataDir: config.dataDir,
    pipelineDelayMs: config.pipelineDelayMs,
    publishDelayMs: config.pipeline?.publishDelayMs,
    isWorker: config.pipeline !== undefined,
    log: (msg, fields) => log.warn({ msg, code: String(fields.code ?? '') }),
  })
  const store = decorate('store', opened.store)
  const { roots, reportSource, collateral } = await createHardware(config, log)
  const verifier = createVerifier({ roots })
  const pem = config.snpCertsFile === undefined ? {} : { pem: readFileSync(config.snpCertsFile, 'utf8') }
  const kds = config.isMock ? {} : { kds: createKdsClient() }
  const selfReport = createSelfReport({
    reportSource,
    certificates: createSnpCertificates({ verifier, ...pem, ...kds, log }),
    configHash: config.configHash,
    clock,
    log,
  })
  await selfReport.ready()
  const enclave = decorate(
    'enclave',
    createHttpEnclave({
      urls: config.enclaveUrls,
      caller: selfReport,
      callerAttestation: () => {
        const { reportHex: report, certificates, configHash } = selfReport.current().selfAttestation
        return { report, certificates, configHash }
      },
      verifier,
      collateral,
      policy: config.enclavePolicy,
      isMock: config.isMock,
      clock,
      random,
      log,
      connections: ENCLAVE_SLOTS,
    }),
  )
  const signatures = await signaturesStarting
  const { entropy: entropyConfig } = config
  const entropy = decorate(
    'entropy',
    createReadAhead({
      source: createEntropySource(config),
      store,
      clock,
      publicKeys: entropyConfig.kind === 'satellite' ? entropyConfig.publicKeys : [],
      maxAgeMs: entropyConfig.maxAgeMs,
      allowUnsigned: entropyConfig.allowUnsigned,
      checkSignatures: signatures.checkSamples,
      log,
    }),
  )
  const metrics = createMetrics({ now: clock.now, countOpenProofs: opened.pipeline.countOpenProofs })
  const signDeps: SignDeps = {
    entropy,
    enclave,
    selfReport,
    signatures,
    verifyBatch: createBatchVerifier({ verifier, policy: config.enclavePolicy, collateral, platformOf, clock }),
    commit: createCommitter({ store, selfReport, clock, random }),
  }
  const gatherer = createGatherer<SignDigestRequest, SignDigestResult>({
    run(requests, progress) {
      metrics.observeBatch(requests.length)
      return signDigests(signDeps, requests, progress)
    },
    keyOf: ({ walletId, digest }) => `${walletId} ${digest}`,
    limit: config.batchLimit,
    slots: ENCLAVE_SLOTS,
  })
  const pipelineConfig = config.pipeline
  const app = createApp({
    ...(pipelineConfig?.pinner.kind === 'helia'
      ? { getBlock: async (cid) => (await pipelineStarting)?.getBlock?.(cid) }
      : {}),
    store,
    enclave,
    entropy,
    selfReport,
    providers: createProviders(config),
    async signDigest(request) {
      const startedAt = performance.now()
      let code = 'ok'
      try {
        return await gatherer.add(request)
      } catch (error) {
        code = error instanceof CoordinatorError ? error.code : 'internal'
        throw error
      } finally {
        metrics.observeSigning(code, (performance.now() - startedAt) / 1000)
      }
    },
    clock,
    random,
    log,
    config: config.app,
  })
  const server = createHttpServer({ fetch: app.app.fetch, refuse: app.refuseUnreadable })
  server.listen(config.listen.port, config.listen.host)
  const listening = new Promise<void>((resolve, reject) => server.once('listening', resolve).once('error', reject))
  // Signing does not wait for the pipeline, nor for its code: what is signed meanwhile is stored with its job.
  const pipelineStarting = listening.then(async () => {
    if (pipelineConfig === undefined) return undefined
    // Loading it keeps the thread busy for a second: those who wait for the service to come back are served first.
    await setTimeout(PIPELINE_START_MS)
    const { startPipeline } = await import('./pipeline/startPipeline.ts')
    const pipelineStore = decorate('pipeline', opened.pipeline)
    const { dataDir } = config
    return startPipeline({ config: pipelineConfig, dataDir, store: pipelineStore, clock, log, metrics, decorate })
  })
  const pipeline = await pipelineStarting
  const { port } = server.address() as AddressInfo
  const metricsServer =
    config.metricsPort === undefined ? undefined : await metrics.listen(config.metricsPort, '127.0.0.1')
  log.info({
    msg: 'Started the coordinator',
    address: `http://${config.listen.host}:${port}`,
    mode: selfReport.mode,
    configHash: config.configHash,
  })

  async function stop(signal: string) {
    log.info({ msg: 'Stopping the coordinator', signal })
    const closed = new Promise((resolve) => server.close(resolve))
    await app.stop()
    await gatherer.stop(new CoordinatorError('shutting_down', 'the service is stopping'))
    server.closeAllConnections()
    await closed
    await Promise.all([
      entropy.stop(),
      enclave.stop(),
      selfReport.stop(),
      collateral.stop(),
      signatures.stop(),
      pipeline?.stop(),
      metricsServer?.stop(),
    ])
    await store.close()
    log.info({ msg: 'Stopped the coordinator' })
  }
  return { stop }
}
