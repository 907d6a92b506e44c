// A coordinator that is killed at the point that CRASH_AT names. Everything else is as it ships.

import { createLog } from '../src/log.ts'
import { startCoordinator } from '../src/start.ts'
import { type CrashPointName, crashPoints, createCrash } from './crashPoints.ts'

const { CRASH_AT, ...env } = process.env
const point = crashPoints[CRASH_AT as CrashPointName]
if (point === undefined) throw new Error(`there is no crash point ${CRASH_AT}`)
await startCoordinator(env, { log: createLog(), decorate: createCrash(point) })
