import { readFileSync, statfsSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { hashOrigin, toVkey } from '@countersign/log'
import { createLog, createShutdown, type Env, type RunningService, runProgram } from '@countersign/service'
import packageJson from '../package.json' with { type: 'json' }
import { readConfig } from './config.ts'
import { lockFolder } from './lockFolder.ts'
import { createMetrics } from './metrics.ts'
import { serveMetrics, serveWitness } from './server.ts'
import { readSigners } from './signers.ts'
import { openStore } from './store.ts'
import { createWitness } from './witness.ts'
import { toKeyPath, toStorePath } from './witnessFolder.ts'

const clock = { now: () => Date.now() }
const log = createLog((line) => writeSync(1, line), clock.now)

async function start(env: Env): Promise<RunningService> {
  const { folder, logs, host, port, metricsPort } = readConfig(env, { readFile: (path) => readFileSync(path, 'utf8') })
  const shutdown = createShutdown()
  // Locks the folder before reading the cosigned checkpoints. From then on, no other process changes them.
  shutdown.add(await lockFolder(folder))
  const signers = readSigners(await readFile(toKeyPath(folder), 'utf8'))
  const store = openStore(toStorePath(folder))
  const metrics = createMetrics({
    readSizes: () => [...logs.keys()].map((origin) => [origin, store.latest(hashOrigin(origin))?.checkpoint.size ?? 0]),
    readDisk() {
      const { bavail, blocks, bsize } = statfsSync(folder)
      return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize }
    },
    now: clock.now,
    startedAt: clock.now() - 1000 * process.uptime(),
    version: packageJson.version,
  })
  const witness = createWitness({ logs, store, signers, clock, log, onFork: metrics.countFork })
  const server = await serveWitness({ witness, count: metrics.count, log }, { host, port })
  shutdown.add(server.close)
  if (metricsPort !== undefined) shutdown.add((await serveMetrics(metrics.toText, metricsPort)).close)
  // Without the ML-DSA-44 keys, which take a kilobyte each.
  const [ed25519] = signers.map(({ key }) => toVkey(key))
  log.info({ msg: 'Started the witness', address: server.address, vkey: ed25519, logs: logs.size })
  return {
    async stop(signal) {
      log.info({ msg: 'Stopping the witness', signal })
      await shutdown.run()
      log.info({ msg: 'Stopped the witness' })
    },
  }
}

const about =
  'Cosigns checkpoints of transparency logs if they continue the last one (c2sp.org/tlog-witness). Create its key with npm run witness:key.'

await runProgram({ log }, { name: 'witness', about }, start)
