// A coordinator that is killed at the point CRASH_AT, or frozen at FREEZE_AT. Everything else is unchanged.

import { createLog } from '../src/log.ts'
import { startCoordinator } from '../src/start.ts'
import { type CrashPoint, checkpointCrashPoints, crashPoints, createCrash, logCrashPoints } from './crashPoints.ts'

const { CRASH_AT, FREEZE_AT, ...env } = process.env
const name = CRASH_AT ?? FREEZE_AT
const points: Record<string, CrashPoint> = { ...crashPoints, ...logCrashPoints, ...checkpointCrashPoints }
const point = points[name ?? '']
if (point === undefined) throw new Error(`there is no crash point ${name}`)
const decorate = createCrash(point, CRASH_AT === undefined ? 'SIGSTOP' : 'SIGKILL')
await startCoordinator(env, { log: createLog(), decorate })
