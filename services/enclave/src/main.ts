import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { createVerifier } from '@countersign/attestation'
import { hashEnclaveConfig, toHex } from '@countersign/protocol'
import { callPeer } from '@countersign/root-secret'
import packageJson from '../package.json' with { type: 'json' }
import { createApp } from './app.ts'
import { createCallers } from './callers.ts'
import { ConfigError, readConfig } from './config.ts'
import { createIdTokenVerifier } from './grant/idToken.ts'
import { createHardware } from './hardware.ts'
import { createKeyWorker } from './keys/keyWorker.ts'
import { createLog } from './log.ts'
import { createCollateralSource } from './rootSecret/collateralSource.ts'
import { createDonor } from './rootSecret/donor.ts'
import { loadRootSecret } from './rootSecret/loadRootSecret.ts'
import { obtainRootSecret } from './rootSecret/obtainRootSecret.ts'
import type { App } from './serveCalls.ts'
import { createTlsIdentity, startServer } from './server.ts'
import { createBatcher } from './sign/batch.ts'

const clock = { now: () => Date.now() }
const random = (length: number) => new Uint8Array(randomBytes(length))
const wait = async (durationMs: number) => void (await setTimeout(durationMs))
const log = createLog((line) => process.stdout.write(line), clock.now)

async function start() {
  const config = readConfig(process.env, {
    readFile: (path) => readFileSync(path, 'utf8'),
    version: packageJson.version,
  })
  if (config.quoteSource.kind === 'mock')
    log.warn('Started with MOCK attestation: its quotes prove nothing about hardware')
  const { rootSecret, enclave } = config
  const bootId = random(16)
  const bootedAt = clock.now()
  const configHash = hashEnclaveConfig(enclave)
  const keyWorker = await createKeyWorker({
    ...(rootSecret.kind === 'attested' ? {} : { rootSecret: await loadRootSecret(rootSecret, random) }),
    configHash,
  })
  const { quoteSource, callerRoots, peerRoots, fetchCollateral } = await createHardware(config, clock)
  const tls = config.listen.kind === 'https' ? createTlsIdentity(clock.now()) : undefined
  const peers = {
    config: enclave,
    quoteSource,
    fetchCollateral: createCollateralSource({ fetch: fetchCollateral, clock }),
    verifier: createVerifier({ roots: peerRoots }),
    holder: keyWorker.holder,
    clock,
    random,
    log,
  }
  const app = createApp({
    callers: createCallers({
      policy: config.callerPolicy,
      verifier: createVerifier({ roots: callerRoots }),
      clock,
    }),
    idTokens: createIdTokenVerifier({ issuers: config.issuers, fetch, clock, bootedAt }),
    keyWorker,
    batcher: createBatcher({ quoteSource, bootId, configHash, limit: config.batchLimit, log }),
    quoteSource,
    config: enclave,
    bootId,
    tlsKeyHash: tls?.keyHash ?? new Uint8Array(32),
    clock,
    random,
    sessionTtlMs: config.sessionTtlMs,
    log,
    version: packageJson.version,
    ...(rootSecret.kind === 'attested' ? { donor: createDonor({ ...peers, policy: rootSecret.policy.policy }) } : {}),
  })
  const health = { mode: quoteSource.mode, version: packageJson.version, bootId: toHex(bootId) }
  const awaited =
    rootSecret.kind === 'attested'
      ? await obtainRootSecret({ ...peers, callPeer, wait, health }, rootSecret)
      : undefined

  // An enclave that is recovered answers custodians first, and everybody when it has its secret.
  let current: App = awaited?.app ?? app
  const server = await startServer(
    { handle: (call) => current.handle(call), isStopping: () => current.isStopping(), stop: () => current.stop() },
    config.listen,
    tls,
  )
  let isStopping = false
  let finishing: Promise<void> | undefined
  async function stop(signal: string) {
    isStopping = true
    log.info('Stopping the enclave', { signal })
    await current.stop()
    await server.close()
    // The backup for new custodians, who have no other. If it fails, that ends the process below.
    await finishing?.catch(() => undefined)
    await keyWorker.close()
    log.info('Stopped the enclave')
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop(signal))

  const lost = keyWorker.ended.then(() => {
    if (!isStopping) throw new Error('the key worker has ended')
  })
  const facts = {
    address: server.address,
    mode: quoteSource.mode,
    configHash: toHex(configHash),
    bootId: toHex(bootId),
  }
  if (awaited !== undefined) {
    log.info('Waiting for custodians', { ...facts, needed: awaited.needed })
    const finished = awaited.recovered.then(() => {
      finishing = awaited.finish()
      return finishing
    })
    await Promise.race([finished, lost])
  }
  if (!isStopping) {
    current = app
    log.info('Started the enclave', facts)
  }
  await lost
}

try {
  await start()
} catch (error) {
  if (error instanceof ConfigError) for (const text of error.faults) log.error('Refused to start', { fault: text })
  else log.error('Could not go on', { reason: error instanceof Error ? error.message : 'unknown' })
  // At once: a process that cannot serve must not live on with the secret in it.
  process.exit(1)
}
