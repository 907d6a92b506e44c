import type { LogMetrics } from '../../src/log/cosignedLogs.ts'
import { createLogService } from '../../src/log/logService.ts'
import type { LogStore } from '../../src/store/logs.ts'
import { createManualTime } from '../manualTime.ts'
import { createFakeLog } from '../ports.ts'
import { createFakeEnclaveLog, type FakeEnclaveLog } from './enclaveLog.ts'
import { createFakeLogStore, type FakeLogStore } from './logStore.ts'
import { startTestWitness, type TestWitness } from './witnesses.ts'

export const ORIGINS = ['log.example/a', 'log.example/a-spare', 'log.example/a-last']

export type LogRig = {
  time: ReturnType<typeof createManualTime>
  log: ReturnType<typeof createFakeLog>
  store: FakeLogStore
  witnesses: readonly TestWitness[]
  enclave: FakeEnclaveLog
  /** Recorded metrics. */
  observed: { rounds: string[]; answers: string[]; entries: string[] }
  /** A coordinator with the rig's store and enclave by default. */
  startLogService(parameters?: LogServiceParameters): ReturnType<typeof createLogService>
  stop(): Promise<void>
}

type LogServiceParameters = {
  store?: LogStore
  enclaves?: readonly FakeEnclaveLog[]
  time?: LogRig['time']
  witnesses?: readonly TestWitness[]
  witnessTimeoutMs?: number
}

/** Three witnesses with a quorum of two, an enclave with a log and two further origins, and a database in memory. */
export async function createLogRig({ own = ORIGINS }: { own?: readonly string[] } = {}): Promise<LogRig> {
  const time = createManualTime(new Date('2026-06-15T12:00:00.000Z'))
  const log = createFakeLog()
  const store = createFakeLogStore()
  const names = ['w1.example', 'w2.example', 'w3.example']
  const witnesses = await Promise.all(names.map((name) => startTestWitness(name, own, time.clock)))
  const keys = witnesses.map(({ key }) => key)
  const enclave = createFakeEnclaveLog({ own, witnesses: keys, quorum: 2 })
  const observed = { rounds: [] as string[], answers: [] as string[], entries: [] as string[] }
  const metrics: LogMetrics = {
    observeRound: (outcome) => void observed.rounds.push(outcome),
    observeWitness: (witness, outcome) => void observed.answers.push(`${witness} ${outcome}`),
    observeLogSize: () => {},
    observeEntry: (kind) => void observed.entries.push(kind),
  }
  const logServices = new Set<ReturnType<typeof createLogService>>()
  return {
    time,
    log,
    store,
    witnesses,
    enclave,
    observed,
    startLogService(parameters = {}) {
      const enclaves = parameters.enclaves ?? [enclave]
      const { clock, schedule } = parameters.time ?? time
      const logService = createLogService({
        enclave: {
          logs: enclaves.map(({ enclaveLog }) => enclaveLog),
          release(request) {
            const boot = enclaves.find(({ bootId }) => bootId === request.bootId) ?? enclave
            return boot.release(request)
          },
        },
        witnesses: (parameters.witnesses ?? witnesses).map(({ site }) => site),
        store: parameters.store ?? store,
        metrics,
        clock,
        schedule,
        log,
        ...(parameters.witnessTimeoutMs === undefined ? {} : { witnessTimeoutMs: parameters.witnessTimeoutMs }),
      })
      logServices.add(logService)
      return logService
    },
    async stop() {
      await Promise.all([...logServices].map((logService) => logService.stop()))
      await Promise.all(witnesses.map((witness) => witness.stop()))
    },
  }
}
