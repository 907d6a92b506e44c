import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createVerifier, vendorRoots } from '@countersign/attestation'
import {
  createConfigfsQuoteSource,
  createDstackQuoteSource,
  createSimulatedQuoteSource,
  type QuoteSource,
} from '@countersign/evidence'
import { hashEnclaveConfig, toHex } from '@countersign/protocol'
import packageJson from '../package.json' with { type: 'json' }
import { createApp } from './app.ts'
import { createCallers } from './caller.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { createIdTokenVerifier } from './grant/idToken.ts'
import { loadRootSecret } from './keys/rootSecret.ts'
import { createVault } from './keys/vault.ts'
import { createLog } from './log.ts'
import { createTlsIdentity, startServer } from './server.ts'
import { createBatcher } from './sign/batch.ts'

const clock = { now: () => Date.now() }
const random = (length: number) => new Uint8Array(randomBytes(length))
const log = createLog((line) => process.stdout.write(line), clock.now)

async function createQuoteSource(source: Config['quoteSource']): Promise<QuoteSource> {
  if (source.kind === 'configfs') return createConfigfsQuoteSource()
  if (source.kind === 'dstack') return createDstackQuoteSource(source)
  // Loaded only here, so that a production enclave never even reads the simulator's code.
  const { createSimulator } = await import('@countersign/attestation/simulator')
  const simulator = createSimulator({ at: new Date(clock.now()) })
  return createSimulatedQuoteSource({ simulator, latencyMs: source.latencyMs })
}

/** The roots that callers' reports are verified under: simulated ones join only where the enclave itself is simulated. */
async function readRoots(source: Config['quoteSource']) {
  if (source.kind !== 'mock') return vendorRoots
  const { simulatedRoots } = await import('@countersign/attestation/simulator')
  return [...vendorRoots, ...simulatedRoots()]
}

async function start() {
  const config = readConfig(process.env, {
    readFile: (path) => readFileSync(path, 'utf8'),
    version: packageJson.version,
  })
  if (config.quoteSource.kind === 'mock')
    log.warn('Started with MOCK attestation: its quotes prove nothing about hardware')
  const bootId = random(16)
  const bootedAt = clock.now()
  const configHash = hashEnclaveConfig(config.enclave)
  const vault = await createVault({ rootSecret: await loadRootSecret(config.rootSecret, random), configHash })
  const quoteSource = await createQuoteSource(config.quoteSource)
  const tls = config.listen.kind === 'https' ? createTlsIdentity(clock.now()) : undefined
  const batcher = createBatcher({ quoteSource, bootId, configHash, limit: config.batchLimit, log })
  const app = createApp({
    callers: createCallers({
      policy: config.callerPolicy,
      verifier: createVerifier({ roots: await readRoots(config.quoteSource) }),
      clock,
    }),
    idTokens: createIdTokenVerifier({ issuers: config.issuers, fetch, clock, bootedAt }),
    vault,
    batcher,
    quoteSource,
    config: config.enclave,
    bootId,
    tlsKeyHash: tls?.keyHash ?? new Uint8Array(32),
    clock,
    random,
    sessionTtlMs: config.sessionTtlMs,
    log,
    version: packageJson.version,
  })
  const server = await startServer(app, config.listen, tls)
  log.info('Started the enclave', {
    address: server.address,
    mode: quoteSource.mode,
    configHash: toHex(configHash),
    bootId: toHex(bootId),
  })

  let isStopping = false
  async function stop(signal: string) {
    isStopping = true
    log.info('Stopping the enclave', { signal })
    await app.stop()
    await server.close()
    await vault.close()
    log.info('Stopped the enclave')
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop(signal))
  await vault.ended
  if (isStopping) return
  throw new Error('the vault has ended')
}

try {
  await start()
} catch (error) {
  if (error instanceof ConfigError) for (const text of error.faults) log.error('Refused to start', { fault: text })
  else log.error('Could not go on', { reason: error instanceof Error ? error.message : 'unknown' })
  // At once: a process that cannot serve must not live on with the secret in it.
  process.exit(1)
}
