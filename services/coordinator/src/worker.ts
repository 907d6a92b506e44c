import { readFileSync } from 'node:fs'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { readWorkerConfig } from './pipeline/config.ts'
import { startPipeline } from './pipeline/startPipeline.ts'
import { type RunningService, runService } from './runService.ts'
import { openStores } from './store/openStore.ts'

const clock = { now: () => Date.now() }
const log = createLog()

/** The worker alone, beside any number of coordinators and other workers on one PostgreSQL. */
async function start(): Promise<RunningService> {
  const { databaseUrl, dataDir, metricsPort, config } = readWorkerConfig(process.env, {
    readFile: (path) => readFileSync(path, 'utf8'),
  })
  const { store, pipeline } = await openStores({
    databaseUrl,
    publishDelayMs: config.publishDelayMs,
    isWorker: true,
    log: (msg, fields) => log.warn({ msg, code: String(fields.code ?? '') }),
  })
  const metrics = createMetrics({ now: clock.now, countOpenProofs: pipeline.countOpenProofs })
  const running = await startPipeline({ config, dataDir, store: pipeline, clock, log, metrics })
  const metricsServer = metricsPort === undefined ? undefined : await metrics.listen(metricsPort, '127.0.0.1')
  return {
    async stop(signal) {
      log.info({ msg: 'Stopping the worker', signal })
      await Promise.all([running.stop(), metricsServer?.stop()])
      await store.close()
      log.info({ msg: 'Stopped the worker' })
    },
  }
}

await runService(log, start())
