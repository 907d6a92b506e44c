import { readFileSync } from 'node:fs'
import { createLog } from './log.ts'
import { readWorkerConfig } from './pipeline/config.ts'
import { startPipeline } from './pipeline/startPipeline.ts'
import { ConfigError } from './readEnv.ts'
import { openStores } from './store/openStore.ts'

const clock = { now: () => Date.now() }
const log = createLog()

/** The worker alone, beside any number of coordinators and other workers on one PostgreSQL. */
async function start(): Promise<{ stop(signal: string): Promise<void> }> {
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

const starting = start()
// From the first moment: told to stop while it starts, it stops when it has started.
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => {
    starting.then(({ stop }) => stop(signal)).catch(() => {})
  })
}

try {
  await starting
} catch (error) {
  if (error instanceof ConfigError) for (const fault of error.faults) log.error({ msg: 'Refused to start', fault })
  else log.error({ msg: 'Could not start', reason: error instanceof Error ? error.message : 'unknown' })
  process.exit(1)
}
