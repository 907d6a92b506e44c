import { readFileSync } from 'node:fs'
import { createLog } from './log.ts'
import { readWorkerConfig } from './pipeline/config.ts'
import { startPipeline } from './pipeline/startPipeline.ts'
import { type RunningService, runService } from './runService.ts'
import { openStores } from './store/openStore.ts'

const clock = { now: () => Date.now() }
const log = createLog()

/** The worker alone, beside any number of coordinators and other workers on one PostgreSQL. */
async function start(): Promise<RunningService> {
  const { databaseUrl, dataDir, config } = readWorkerConfig(process.env, {
    readFile: (path) => readFileSync(path, 'utf8'),
  })
  const { store, pipeline } = await openStores({
    databaseUrl,
    isWorker: true,
    log: (msg, fields) => log.warn({ msg, code: String(fields.code ?? '') }),
  })
  const running = await startPipeline({ config, dataDir, store: pipeline, clock, log })
  return {
    async stop(signal) {
      log.info({ msg: 'Stopping the worker', signal })
      await running.stop()
      await store.close()
      log.info({ msg: 'Stopped the worker' })
    },
  }
}

await runService(log, start())
