import { readFileSync } from 'node:fs'
import { createShutdown, type Env, type RunningService, runProgram } from '@countersign/service'
import packageJson from '../package.json' with { type: 'json' }
import { createLog } from './log.ts'
import { createMetrics } from './operate/metrics.ts'
import { readWorkerConfig, toPublishStartMs } from './publish/config.ts'
import { startPipeline } from './publish/startPipeline.ts'
import { openStores } from './store/openStore.ts'
import { systemClock } from './system.ts'

const log = createLog()

/** Starts a separate worker. It shares PostgreSQL with coordinators and other workers. */
async function start(env: Env): Promise<RunningService> {
  const { databaseUrl, dataDir, metricsPort, config } = readWorkerConfig(env, {
    readFile: (path) => readFileSync(path, 'utf8'),
  })
  const clock = systemClock
  const shutdown = createShutdown()
  const { store, pipeline } = await openStores({
    databaseUrl,
    publishDelayMs: toPublishStartMs(config),
    isWorker: true,
    log,
  })
  shutdown.add(() => store.close())
  const metrics = createMetrics({
    now: clock.now,
    info: { program: 'worker', version: packageJson.version, mode: 'none' },
    parts: { database: store.ping },
    countOpenProofs: pipeline.countOpenProofs,
    countWebhooks: pipeline.countWebhooks,
    countConnections: pipeline.countConnections,
    dataDir,
  })
  const running = await startPipeline({ config, dataDir, store: pipeline, clock, log, metrics })
  shutdown.add(() => running.stop())
  if (metricsPort !== undefined) {
    const metricsServer = await metrics.listen(metricsPort, '127.0.0.1')
    shutdown.add(() => metricsServer.stop())
  }
  return {
    async stop(signal) {
      log.info({ msg: 'Stopping the worker', signal })
      await shutdown.run()
      log.info({ msg: 'Stopped the worker' })
    },
  }
}

const about =
  'Publishes proofs: pins receipts to IPFS and publishes their CIDs on the chain. Uses the PostgreSQL of the coordinators.'

await runProgram({ log }, { name: 'worker', about }, start)
