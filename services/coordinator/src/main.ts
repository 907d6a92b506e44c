import { createLog } from './log.ts'
import { ConfigError } from './readEnv.ts'
import { startCoordinator } from './start.ts'

const log = createLog()
const starting = startCoordinator(process.env, { log })
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
  // At once: what was opened before the failure must not keep the process alive.
  process.exit(1)
}
