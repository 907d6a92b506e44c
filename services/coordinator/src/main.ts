import { createLog } from './log.ts'
import { runService } from './runService.ts'
import { startCoordinator } from './start.ts'

const log = createLog()

await runService(log, startCoordinator(process.env, { log }))
