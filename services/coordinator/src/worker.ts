import { readFileSync } from 'node:fs'
import { createShutdown, type RunningService, runService } from '@countersign/service'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { readWorkerConfig } from './pipeline/config.ts'
import { startPipeline } from './pipeline/startPipeline.ts'
import { openStores } from './store/openStore.ts'
import { systemClock } from './system.ts'

const log = createLog()

/** The worker alone, beside any number of coordinators and other workers on one PostgreSQL. */
async function start(): Promise<RunningService> {
  const { databaseUrl, dataDir, metricsPort, config } = readWorkerConfig(process.env, {
    readFile: (path) => readFileSync(path, 'utf8'),
  })
  const clock = systemClock
  const shutdown = createShutdown()
  const { store, pipeline } = await openStores({
    databaseUrl,
    publishDelayMs: config.publishDelayMs,
    isWorker: true,
    log,
  })
  shutdown.add(() => store.close())
  const metrics = createMetrics({ now: clock.now, countOpenProofs: pipeline.countOpenProofs })
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

await runService({ log }, start)
