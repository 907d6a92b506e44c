import { existsSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Log, RunningService } from '@countersign/service'
import { createShutdown } from '@countersign/service'
import { readStaticFiles } from '@countersign/service/staticFiles'
import packageJson from '../package.json' with { type: 'json' }
import { createProviders } from './accounts/providers.ts'
import { createSignerFinder } from './accounts/session.ts'
import { createApp } from './app.ts'
import { readConfig } from './config.ts'
import { type Decorate, keepOriginal } from './dependencies.ts'
import { createHttpServer } from './http/createHttpServer.ts'
import { stopHttpServer } from './http/stopHttpServer.ts'
import { createLogService } from './log/logService.ts'
import { createAttestation } from './operate/attest.ts'
import { createMetrics } from './operate/metrics.ts'
import { createRebuildReceipt } from './publish/assembleReceipt.ts'
import { toPublishStartMs } from './publish/config.ts'
import { createWarner, watchKeys } from './publish/webhook/warner.ts'
import { createBatchSigner } from './sign/batchSigner.ts'
import { createBatchVerifier, createReleaser } from './sign/checkBatch.ts'
import { createSignatureChecker } from './sign/checkSignatures.ts'
import { createCommitter } from './sign/commit.ts'
import { ENCLAVE_SLOTS } from './sign/enclave/endpointLoads.ts'
import { createHttpEnclave } from './sign/enclave/httpEnclave.ts'
import { createBeaconEntropy } from './sign/entropy/beaconEntropy.ts'
import { createEntropySource } from './sign/entropy/createEntropySource.ts'
import { createDrandSource } from './sign/entropy/drand.ts'
import { createReadAhead } from './sign/entropy/readAhead.ts'
import { createSignLog } from './sign/signLog.ts'
import { guard } from './store/databaseError.ts'
import { openStores } from './store/openStore.ts'
import { systemClock, systemRandom, systemSchedule } from './system.ts'

const PIPELINE_START_MS = 200
/** Written by `npm run docs`. */
const DOCS_FOLDER = join(import.meta.dirname, '../../../docs/site/dist')

/** Creates all parts of the coordinator from the environment and starts the server. */
export async function startCoordinator(
  env: Readonly<Record<string, string | undefined>>,
  { log, decorate = keepOriginal }: { log: Log; decorate?: Decorate },
): Promise<RunningService> {
  const config = readConfig(env, {
    readFile: (path) => readFileSync(path, 'utf8'),
    version: packageJson.version,
  })
  if (config.isMock) log.warn({ msg: 'Started with MOCK attestation: its proofs prove nothing about hardware' })
  const clock = systemClock
  const random = systemRandom
  const shutdown = createShutdown()

  // It has its own thread, so it loads while the database opens.
  const signaturesStarting = createSignatureChecker()
  signaturesStarting.catch(() => {})
  const { pipeline: pipelineConfig } = config
  const opened = await openStores({
    databaseUrl: config.databaseUrl,
    pipelineDelayMs: config.pipelineDelayMs,
    publishDelayMs: pipelineConfig && toPublishStartMs(pipelineConfig),
    isWorker: pipelineConfig !== undefined,
    log,
  })
  const store = decorate('store', opened.store)
  shutdown.add(() => store.close())

  const { webhookEvents } = opened.pipeline
  const warnOf = createWarner({ events: webhookEvents, clock, log })
  const webhookKeys = await watchKeys({ events: webhookEvents, schedule: systemSchedule })
  shutdown.add(() => webhookKeys.stop())
  const { verifier, collateral, readPlatform, selfReport, endpointDeps } = await createAttestation(
    { clock, random, log, warnOf, collateralCache: opened.collateralCache },
    config,
  )
  const enclave = decorate(
    'enclave',
    // Twice as many connections as slots, so that releasing signatures does not wait for signing.
    createHttpEnclave({ ...endpointDeps, urls: config.enclaveUrls, connections: 2 * ENCLAVE_SLOTS }),
  )

  const signatures = await signaturesStarting
  const { entropy: entropyConfig } = config
  const { maxAgeMs } = entropyConfig
  const entropy = decorate(
    'entropy',
    entropyConfig.kind === 'drand'
      ? createBeaconEntropy({ ...entropyConfig, source: createDrandSource({ ...entropyConfig, fetch }), clock, log })
      : createReadAhead({
          source: createEntropySource({ fetch, clock }, entropyConfig),
          store,
          clock,
          publicKeys: entropyConfig.kind === 'satellite' ? entropyConfig.publicKeys : [],
          maxAgeMs,
          allowUnsigned: entropyConfig.allowUnsigned,
          log,
        }),
  )

  const attestationLapsesAt = () => Date.parse(selfReport.current().expiresAt)
  const metrics = createMetrics({
    now: clock.now,
    info: { program: 'coordinator', version: packageJson.version, mode: selfReport.mode },
    parts: {
      database: store.ping,
      attestation: attestationLapsesAt,
      ...(config.witnesses.length === 0 ? {} : { log: () => logService?.isOpen() }),
    },
    countOpenProofs: opened.pipeline.countOpenProofs,
    countWebhooks: opened.pipeline.countWebhooks,
    countConnections: opened.pipeline.countConnections,
    dataDir: config.dataDir,
    witnesses: config.witnesses.map(({ key }) => key.name),
    signing: {
      checkEnclaves: enclave.check,
      listCollateral: collateral.listLapses,
      attestationLapsesAt,
      readEntropy: () => entropy.stats?.(),
      countWitnesses: () => logService?.countWitnesses() ?? [],
    },
  })
  const logDeps = { enclave, clock, schedule: systemSchedule, log }
  const logService =
    config.witnesses.length === 0
      ? undefined
      : decorate(
          'logService',
          createLogService({ ...logDeps, store: opened.logStore, witnesses: config.witnesses, metrics }),
        )
  const releaser = createReleaser(selfReport)
  const signers = createSignerFinder({
    store,
    clock,
    sessionIdleMs: config.app.sessionIdleMs,
    // One lookup at a time if other coordinators share the enclave, so that each batch is as large as with one coordinator.
    slots: () => (enclave.countSlots() < ENCLAVE_SLOTS ? 1 : 2),
  })
  const signer = createBatchSigner({
    entropy,
    enclave,
    selfReport,
    signatures,
    clock,
    verifyBatch: createBatchVerifier({ verifier, policy: config.enclavePolicy, collateral, readPlatform, releaser }),
    commit: createCommitter({ store, selfReport, clock, random, releaser }),
    receiptVersion: config.receiptVersion,
    signLog: logService && createSignLog({ ...logDeps, store, logService }),
    log,
    metrics,
    batchLimit: config.batchLimit,
  })
  const app = createApp({
    ...(pipelineConfig?.pinner.kind === 'helia'
      ? { getBlock: async (cid) => (await pipelineStarting)?.getBlock?.(cid) }
      : {}),
    rebuildReceipt: createRebuildReceipt(opened.pipeline.pinning),
    exportProofs: guard(async (parameters) => {
      // Loaded on first use, which speeds up the start.
      const { exportUser } = await import('./proofs/export/exportCar.ts')
      const onMissing = (count: number) => log.warn({ msg: 'Left receipts out of an export', count })
      return exportUser({ db: opened.database.db, onMissing }, parameters)
    }),
    store,
    signers,
    logStore: opened.logStore,
    getWebhookKeys: webhookKeys.current,
    warnOf,
    enclave,
    entropy,
    selfReport,
    providers: createProviders(config.providers, { publicUrl: config.app.publicUrl, clock }),
    sign: signer.sign,
    ...(logService && { logService }),
    docsSite: existsSync(DOCS_FOLDER) ? readStaticFiles(DOCS_FOLDER) : undefined,
    clock,
    random,
    log,
    metrics,
    config: config.app,
  })
  const server = createHttpServer(app.handleRequest)
  server.listen(config.listen.port, config.listen.host)
  const listening = new Promise<void>((resolve, reject) => server.once('listening', resolve).once('error', reject))

  // Signing does not wait for the pipeline to load: signatures are stored together with their jobs.
  const pipelineStarting = listening.then(async () => {
    if (pipelineConfig === undefined) return undefined
    // Loading blocks the event loop for a second, so callers that waited for the restart are served first.
    await setTimeout(PIPELINE_START_MS)
    const { startPipeline } = await import('./publish/startPipeline.ts')
    const pipelineStore = decorate('pipeline', opened.pipeline)
    const { dataDir } = config
    return startPipeline({ config: pipelineConfig, dataDir, store: pipelineStore, clock, log, metrics, decorate })
  })
  const pipeline = await pipelineStarting
  const { metricsPort } = config
  const metricsServer = metricsPort === undefined ? undefined : await metrics.listen(metricsPort, '127.0.0.1')
  // These parts stop at the same time, because none needs another one to stop. They may still use the store, which closes after them.
  shutdown.add(
    () => metricsServer?.stop(),
    () => pipeline?.stop(),
    () => entropy.stop(),
    () => signatures.stop(),
    () => logService?.stop(),
    () => enclave.stop(),
    () => selfReport.stop(),
    () => collateral.stop(),
  )
  // Added last, so it runs first: pending requests are answered while all parts still work.
  shutdown.add(() =>
    stopHttpServer(server, async () => {
      await app.stop()
      await signer.stop()
    }),
  )
  log.info({
    msg: 'Started the coordinator',
    address: `http://${config.listen.host}:${(server.address() as AddressInfo).port}`,
    mode: selfReport.mode,
    configHash: config.configHash,
  })
  return {
    async stop(signal) {
      log.info({ msg: 'Stopping the coordinator', signal })
      await shutdown.run()
      log.info({ msg: 'Stopped the coordinator' })
    },
  }
}
