import { runService } from '@countersign/service'
import { createLog } from './log.ts'
import { startCoordinator } from './start.ts'

const log = createLog()

await runService({ log }, () => startCoordinator(process.env, { log }))
