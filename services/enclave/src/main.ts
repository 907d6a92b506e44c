import { randomBytes } from 'node:crypto'
import { readFileSync, writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { createVerifier } from '@countersign/attestation/core'
import { hashEnclaveConfig, toHex } from '@countersign/protocol/core'
import { callPeer } from '@countersign/root-secret'
import { createLog, createShutdown, type Env, type RunningService, runProgram } from '@countersign/service'
import packageJson from '../package.json' with { type: 'json' }
import { createApp } from './app.ts'
import { createCallers } from './callers.ts'
import { readConfig } from './config.ts'
import { createIdTokenVerifier } from './grant/idToken.ts'
import { createHardware } from './hardware.ts'
import { createKeyWorker } from './keys/keyWorker.ts'
import { createStatementLog } from './log/statementLog.ts'
import { createCollateralSource } from './rootSecret/collateralSource.ts'
import { createDonor } from './rootSecret/donor.ts'
import { loadRootSecret } from './rootSecret/loadRootSecret.ts'
import { obtainRootSecret } from './rootSecret/obtainRootSecret.ts'
import type { App } from './serveCalls.ts'
import { createTlsIdentity, startServer } from './server.ts'
import { createBatcher } from './sign/batch.ts'
import { createSamples } from './sign/samples.ts'
import { keepTime } from './time/keepTime.ts'
import { learnTime } from './time/learnTime.ts'
import { createTime } from './time/time.ts'
import { createPolicyTexts } from './vault/policyMemory.ts'

const clock = { now: () => Date.now() }
const elapsedMs = () => performance.now()
const random = (length: number) => new Uint8Array(randomBytes(length))
/** How often to erase statements that no coordinator fetched. */
const EXPIRE_INTERVAL_MS = 1_000
const wait = async (durationMs: number) => void (await setTimeout(durationMs))
const log = createLog((line) => writeSync(1, line), clock.now)

async function start(env: Env): Promise<RunningService> {
  const config = readConfig(env, {
    readFile: (path) => readFileSync(path, 'utf8'),
    version: packageJson.version,
  })
  if (config.quoteSource.kind === 'mock') {
    log.warn({ msg: 'Started with MOCK attestation: its quotes prove nothing about hardware' })
  }
  const { rootSecret, enclave } = config
  const bootId = random(16)
  const time = createTime({ clock, elapsedMs })
  const configHash = hashEnclaveConfig(enclave)
  const shutdown = createShutdown()
  const keyWorker = await createKeyWorker({
    ...(rootSecret.kind === 'attested' ? {} : { rootSecret: await loadRootSecret(rootSecret, random) }),
    configHash,
    implementations: config.settings.implementations,
    chainIds: config.chainIds,
    log: config.settings.log,
    onChanges: (changes) => statementLog?.change(changes),
  })
  shutdown.add(() => keyWorker.close())
  const { quoteSource, callerRoots, peerRoots, fetchCollateral } = await createHardware(config, clock)
  const tls = config.listen.kind === 'https' ? createTlsIdentity(clock.now()) : undefined
  const peers = {
    config: enclave,
    settings: config.settings,
    quoteSource,
    fetchCollateral: createCollateralSource({ fetch: fetchCollateral, clock: time }),
    verifier: createVerifier({ roots: peerRoots }),
    holder: keyWorker.holder,
    clock: time,
    random,
    log,
  }
  const idTokens = createIdTokenVerifier({ issuers: config.issuers, fetch, time })
  const samples = createSamples({ sources: config.settings.entropy, time })
  const statementLog =
    config.settings.log === null
      ? undefined
      : createStatementLog({
          setting: config.settings.log,
          origins: config.logOrigins,
          keyWorker,
          bootId,
          configHash,
          time,
          elapsedMs,
          log,
        })
  const app = createApp({
    callers: createCallers({
      policy: config.callerPolicy,
      verifier: createVerifier({ roots: callerRoots }),
      clock: time,
    }),
    idTokens,
    keyWorker,
    batcher: createBatcher({
      quoteSource,
      bootId,
      configHash,
      limit: config.batchLimit,
      log,
      ...(statementLog === undefined ? {} : { onStart: statementLog.append }),
    }),
    statementLog,
    samples,
    policyTexts: createPolicyTexts(),
    quoteSource,
    config: enclave,
    settings: config.settings,
    chainIds: config.chainIds,
    bootId,
    tlsKeyHash: tls?.keyHash ?? new Uint8Array(32),
    time,
    random,
    sessionTtlMs: config.sessionTtlMs,
    log,
    version: packageJson.version,
    ...(rootSecret.kind === 'attested' ? { donor: createDonor({ ...peers, policy: rootSecret.policy.policy }) } : {}),
  })
  const facts = { mode: quoteSource.mode, bootId: toHex(bootId) }
  const stopping = new AbortController()
  const { signal } = stopping
  const timeDeps = {
    time,
    fetchDate: idTokens.fetchDate,
    wait: (durationMs: number) => setTimeout(durationMs, undefined, { signal }).catch(() => undefined),
    log,
  }
  const learning = learnTime({ ...timeDeps, clock }, signal)
  const keeping = keepTime(timeDeps, signal)
  if (statementLog !== undefined) {
    const timer = setInterval(statementLog.expire, EXPIRE_INTERVAL_MS)
    shutdown.add(() => clearInterval(timer))
  }
  let isListening = false
  let isStopping = false

  /** Obtains the root secret and listens. Joining may take minutes; a recovery waits without limit. */
  async function serve() {
    const health = { ...facts, version: packageJson.version }
    // A joiner verifies evidence. By the host's clock, expired evidence could pass.
    if (rootSecret.kind === 'attested' && rootSecret.from.kind === 'join') await learning
    if (isStopping) return
    const recovery =
      rootSecret.kind === 'attested'
        ? await obtainRootSecret({ ...peers, callPeer, wait, health }, rootSecret)
        : undefined
    // An enclave in recovery answers custodians first, and all callers once it has its secret.
    let current: App = recovery?.app ?? app
    const { address, close } = await startServer(
      {
        admit: (head) => current.admit(head),
        handle: (call) => current.handle(call),
        isStopping: () => current.isStopping(),
        stop: () => current.stop(),
      },
      config.listen,
      tls,
    )
    isListening = true
    let finishing: Promise<void> | undefined
    // Shutdown waits for the backup of new custodians, who have no other. If it fails, that ends the process, below.
    shutdown.add(() => finishing?.catch(() => undefined))
    shutdown.add(close)
    shutdown.add(() => current.stop())
    if (recovery !== undefined) {
      log.info({
        msg: 'Waiting for custodians',
        address,
        configHash: toHex(configHash),
        ...facts,
        needed: recovery.needed,
      })
      await recovery.recovered
      finishing = recovery.finish()
      await finishing
    }
    if (isStopping) return
    current = app
    // The enclave answers meanwhile, but refuses to open sessions and to sign.
    log.info({ msg: 'Waiting for the time', address })
    await learning
    if (isStopping) return
    // Witnesses need the keys before anything can be signed. Operators find them in this line.
    const logKeys = statementLog === undefined ? {} : { logKeys: (await statementLog.describe()).keys.join(' ') }
    // Operators can pin this root secret in coordinators.
    const commitment = toHex(await keyWorker.getCommitment())
    log.info({ msg: 'Started the enclave', address, configHash: toHex(configHash), commitment, ...facts, ...logKeys })
  }

  async function assertKeyWorker() {
    await keyWorker.ended
    if (!isStopping) throw new Error('the key worker has ended')
  }

  return {
    ended: Promise.all([serve(), learning, keeping, assertKeyWorker()]),
    async stop(signal) {
      isStopping = true
      stopping.abort()
      log.info({ msg: 'Stopping the enclave', signal })
      if (isListening) await shutdown.run()
      log.info({ msg: 'Stopped the enclave' })
      // There is nothing to finish yet, and a peer may take minutes to answer.
      if (!isListening) process.exit(0)
    },
  }
}

const about =
  'Holds the root secret, derives the wallets’ keys and signs with them for coordinators that its policy allows.'

await runProgram({ log }, { name: 'enclave', about }, start)
