import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OidcAccount } from '../localPeople.ts'
import { startOidcProvider } from '../oidc.ts'
import { findFreePorts } from '../ports.ts'
import { startSatellite } from '../satellite.ts'
import { createTestDatabase } from '../testDatabase.ts'
import { type Environment, noRateLimits, toCoordinatorEnv, toEnclaveEnv } from './environments.ts'
import { mains, toMains, toPath } from './paths.ts'
import { allStarted, type Scope, startInScope } from './scope.ts'
import { type Service, startService } from './startService.ts'
import {
  createWitnessFolders,
  type RunningWitness,
  readLogKeys,
  runWitness,
  type WitnessFolder,
  writeLogList,
} from './witnesses.ts'

export type StartBackendParameters = {
  /** A database that is there already. */
  databaseUrl?: string
  /** A satellite that runs elsewhere. */
  satellite?: { url: string; publicKey: string }
  /** Who can sign in; five people with names by default. */
  accounts?: readonly OidcAccount[]
  quoteLatencyMs?: number
  /** Added to the coordinator's environment. */
  env?: Environment
  /** Added to the enclave's environment. */
  enclaveEnv?: Environment
  /** Has the enclave insist on a log, with witnesses as processes. */
  log?: BackendLog | undefined
  /** As for `startService`. */
  hasCompileCache?: boolean
  /** Enclave and coordinator are those of another checkout, in this folder, to compare with. */
  checkout?: string | undefined
}

export type BackendLog = {
  /** How many; three by default. */
  witnesses?: number
  /** Of the enclave, the preferred one first. */
  origins?: readonly string[]
  /** Those that witnesses know; all by default. */
  knownOrigins?: readonly string[]
  /** Puts something between the coordinator and a witness. Answers where it is. */
  route?(witness: RunningWitness, scope: Scope): Promise<string>
}

/** Replaced where a database must fail to start. */
type StartBackendDeps = { createTestDatabase(): Promise<{ url: string; drop(): Promise<void> }> }

export type Backend = Awaited<ReturnType<typeof startBackend>>

const accounts: readonly OidcAccount[] = ['alice', 'bob', 'carol', 'dave', 'erin'].map((sub) => ({
  sub,
  email: `${sub}@example.com`,
  name: `The one called ${sub}`,
}))

/** Of a log that nobody but this machine knows, and of a spare. */
const LOG_ORIGINS = ['log.localhost/1', 'log.localhost/2']
const READY_MS = 60_000

/** A coordinator that kills or freezes itself at a named point of its life. */
const CRASHING_COORDINATOR = toPath('services/coordinator/test/crashingMain.ts')

/** The whole backend on loopback: identity provider and satellite here, database, enclave and coordinator as processes. */
export function startBackend(parameters: StartBackendParameters = {}, deps: StartBackendDeps = { createTestDatabase }) {
  return startInScope((scope) => startParts(deps, parameters, scope))
}

async function startParts(deps: StartBackendDeps, parameters: StartBackendParameters, scope: Scope) {
  const { env: coordinatorChanges = {}, enclaveEnv: enclaveChanges = {}, quoteLatencyMs = 5 } = parameters
  const folder = await scope.createFolder()
  const programs = parameters.checkout === undefined ? mains : toMains(parameters.checkout)
  // Known before they start: the identity provider redirects to them.
  const [port = 0, secondPort = 0] = await findFreePorts(2)
  const url = `http://localhost:${port}`
  const secondUrl = `http://localhost:${secondPort}`
  const oidc = scope.add(
    await startOidcProvider({
      redirectUris: [url, secondUrl].map((each) => `${each}/auth/google/callback`),
      accounts: parameters.accounts ?? accounts,
    }),
    ({ stop }) => stop(),
  )
  const satellite = scope.add(await startSatellite(), ({ stop }) => stop())
  const output: string[] = []
  const start = async (name: 'enclave' | 'coordinator', main: string, env: Environment) => {
    const service = startService({
      name,
      main,
      env,
      onLine: (line) => output.push(line),
      ...(parameters.hasCompileCache === undefined ? {} : { hasCompileCache: parameters.hasCompileCache }),
    })
    // Before it serves: it may be another part that does not start.
    scope.add(service, ({ kill }) => kill('SIGKILL'))
    return { service, fields: await service.started }
  }

  const rootSecretFile = join(folder, 'root-secret')
  const { log } = parameters
  const origins = log?.origins ?? LOG_ORIGINS
  const folders = log && (await createWitnessFolders(join(folder, 'witnesses'), log.witnesses ?? 3))
  const enclaveEnv = {
    ...toEnclaveEnv({
      rootSecretFile,
      oidc,
      entropyKey: (parameters.satellite ?? satellite).publicKey,
      quoteLatencyMs,
      log: folders && { origins, witnesses: folders.map(({ vkey }) => vkey) },
    }),
    ...enclaveChanges,
  }
  const dataDir = join(folder, 'data')
  const [started, databaseUrl] = await allStarted([
    start('enclave', programs.enclave, enclaveEnv),
    parameters.databaseUrl ?? createDatabase(deps, scope),
  ])
  let enclave = started
  const enclaveUrl = String(enclave.fields.address)

  const logsFile = join(folder, 'logs')
  const witnesses: RunningWitness[] = []
  const routes: { vkey: string; url: string }[] = []
  if (log !== undefined && folders !== undefined) {
    const known = log.knownOrigins ?? origins
    const keys = readLogKeys(enclave.fields).filter((vkey) => known.some((origin) => vkey.startsWith(`${origin}+`)))
    await writeLogList(logsFile, keys)
    const onLine = (line: string) => output.push(line)
    const start = async (each: WitnessFolder) =>
      scope.add(await runWitness(each, { logsFile, onLine }), ({ kill }) => kill('SIGKILL'))
    for (const witness of await allStarted(folders.map(start))) {
      witnesses.push(witness)
      routes.push({ vkey: witness.vkey, url: (await log.route?.(witness, scope)) ?? witness.url })
    }
  }

  const env: Environment = {
    ...toCoordinatorEnv({
      port,
      oidc,
      enclaveUrls: [enclaveUrl],
      satellite: parameters.satellite ?? satellite,
      dataDir,
      databaseUrl,
      witnesses: log && routes,
    }),
    ...noRateLimits,
    ...coordinatorChanges,
  }
  const startCoordinator = (changes: Environment) => {
    const isCrashing = 'CRASH_AT' in changes || 'FREEZE_AT' in changes
    return start('coordinator', isCrashing ? CRASHING_COORDINATOR : programs.coordinator, { ...env, ...changes })
  }
  let coordinator = await startCoordinator({})

  return {
    /** Where browsers reach the coordinator. */
    url,
    /** Those of the log. */
    witnesses,
    /** The list of logs that they know. */
    logsFile,
    /** Of the enclave, where it has a log. */
    logOrigins: origins,
    /** Has all witnesses know all logs of the enclave from now on. */
    async introduceLogs() {
      await writeLogList(logsFile, readLogKeys(enclave.fields))
      for (const witness of witnesses) {
        await witness.kill('SIGTERM')
        await witness.start()
      }
    },
    /** Resolves when the coordinator says that it can sign: with a log that is a while after it serves. */
    async untilReady(timeoutMs = READY_MS) {
      const until = performance.now() + timeoutMs
      for (;;) {
        const answer = await fetch(`${url}/health/ready`).catch((error: Error) => error)
        if (answer instanceof Response && answer.ok) return void (await answer.body?.cancel())
        const text = answer instanceof Response ? await answer.text() : String(answer.cause ?? answer)
        if (performance.now() > until) throw new Error(`The coordinator is not ready: ${text}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    /** Where it listens. */
    address: String(coordinator.fields.address),
    enclaveUrl,
    /** What the enclave said of itself when it started. */
    enclaveFields: () => enclave.fields,
    databaseUrl,
    /** Of the embedded IPFS node. */
    dataDir,
    rootSecretFile,
    oidc,
    satellite,
    /** All that coordinators and enclaves have written. */
    logs: () => output.join('\n'),
    /** Undefined where one has ended. */
    pids: () => ({ enclave: toPid(enclave), coordinator: toPid(coordinator) }),
    stopCoordinator: (signal: NodeJS.Signals) => coordinator.service.kill(signal),
    wakeCoordinator: () => coordinator.service.wake(),
    isCoordinatorFrozen: async () =>
      /^State:\s+T/m.test(await readFile(`/proc/${coordinator.service.pid}/status`, 'utf8')),
    /** Resolves when the coordinator's process has ended. */
    coordinatorEnded: () => coordinator.service.ended,
    /** With these keys in its environment, and no others of earlier starts. */
    async startCoordinator(changes: Environment = {}) {
      coordinator = await startCoordinator(changes)
    },
    /** Another coordinator at a port of its own: on the same database and enclave, unless these keys of its environment say otherwise. */
    async startSecond(changes: Environment = {}) {
      const { service } = await startCoordinator({ ...changes, PORT: String(secondPort) })
      return { url: secondUrl, stop: () => service.kill('SIGKILL') }
    },
    stopEnclave: (signal: NodeJS.Signals) => enclave.service.kill(signal),
    freezeEnclave: () => enclave.service.freeze(),
    wakeEnclave: () => enclave.service.wake(),
    /** Another enclave with the same root secret and log, at a port of its own: its URL. */
    async startSecondEnclave() {
      const { fields } = await start('enclave', programs.enclave, { ...enclaveEnv, PORT: '0' })
      return String(fields.address)
    },
    /** On the same port, with the same root secret. */
    async startEnclave() {
      enclave = await start('enclave', programs.enclave, { ...enclaveEnv, PORT: new URL(enclaveUrl).port })
    },
  }
}

const toPid = ({ service }: { service: Service }) => (service.hasEnded() ? undefined : service.pid)

async function createDatabase({ createTestDatabase }: StartBackendDeps, scope: Scope): Promise<string> {
  const { url } = scope.add(await createTestDatabase(), ({ drop }) => drop())
  return url
}
