import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OidcAccount } from '../localAccounts.ts'
import { startOidcProvider } from '../oidc.ts'
import { findFreePorts } from '../ports.ts'
import { startSatellite } from '../satellite.ts'
import { createTestDatabase } from '../testDatabase.ts'
import {
  APP_ORIGIN,
  type Environment,
  LOG_ORIGINS,
  noRateLimits,
  toCoordinatorEnv,
  toEnclaveEnv,
} from './environments.ts'
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
  /** URL of an existing database. */
  databaseUrl?: string
  /** A satellite that is already running. */
  satellite?: { url: string; publicKey: string }
  /** Suggested accounts. Default: five named users. */
  accounts?: readonly OidcAccount[]
  quoteLatencyMs?: number
  /** The app signs in at the provider itself, with its own client. There is no sign-in through the service. */
  isDirect?: boolean
  /** Where such a sign-in returns to. */
  pageUrl?: string
  env?: Environment
  enclaveEnv?: Environment
  /** Makes the enclave require a log, with witnesses as processes. */
  log?: BackendLog | undefined
  /** See `startService`. */
  hasCompileCache?: boolean
  /** Folder of another checkout, whose enclave and coordinator are started instead, to compare with. */
  checkout?: string | undefined
}

export type BackendLog = {
  /** Number of witnesses. Default: three. */
  witnesses?: number
  /** Origins of the enclave, the preferred one first. Default: `LOG_ORIGINS`. */
  origins?: readonly string[]
  /** Origins that witnesses know. Default: all. */
  knownOrigins?: readonly string[]
  /** Adds a proxy between the coordinator and a witness. Returns its URL. */
  route?(witness: RunningWitness, scope: Scope): Promise<string>
}

/** Replaced in tests of a database that fails to start. */
type StartBackendDeps = { createTestDatabase(): Promise<{ url: string; drop(): Promise<void> }> }

export type Backend = Awaited<ReturnType<typeof startBackend>>

const accounts: readonly OidcAccount[] = ['alice', 'bob', 'carol', 'dave', 'erin'].map((sub) => ({
  sub,
  email: `${sub}@example.com`,
  name: `The one called ${sub}`,
}))

const READY_MS = 60_000

/** A coordinator that kills or freezes itself at a named crash point. */
const CRASHING_COORDINATOR = toPath('services/coordinator/test/crashingMain.ts')

/**
 * Starts the whole backend on loopback: identity provider and satellite in this process; database, enclave and coordinator as separate
 * processes.
 */
export function startBackend(parameters: StartBackendParameters = {}, deps: StartBackendDeps = { createTestDatabase }) {
  return startInScope((scope) => startParts(deps, parameters, scope))
}

async function startParts(deps: StartBackendDeps, parameters: StartBackendParameters, scope: Scope) {
  const { env: coordinatorChanges = {}, enclaveEnv: enclaveChanges = {}, quoteLatencyMs = 5 } = parameters
  const folder = await scope.createFolder()
  const programs = parameters.checkout === undefined ? mains : toMains(parameters.checkout)
  // Chosen before the start, because the identity provider redirects to them.
  const [port = 0, secondPort = 0] = await findFreePorts(2)
  const url = `http://localhost:${port}`
  const secondUrl = `http://localhost:${secondPort}`
  const oidc = scope.add(
    await startOidcProvider({
      redirectUris: [url, secondUrl].map((each) => `${each}/auth/google/callback`),
      pageUris: [parameters.pageUrl ?? `${APP_ORIGIN}/`],
      accounts: parameters.accounts ?? accounts,
    }),
    ({ stop }) => stop(),
  )
  const { issuer, pageClientId } = oidc
  const trustedOidc = parameters.isDirect ? { issuer, clientId: pageClientId } : oidc
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
    // Added before it serves, in case another part fails to start.
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
      oidc: trustedOidc,
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
      oidc: trustedOidc,
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
    /** The coordinator's URL for browsers. */
    url,
    /** Witnesses of the log. */
    witnesses,
    /** File with the logs that the witnesses know. */
    logsFile,
    /** Log origins of the enclave. */
    logOrigins: origins,
    /** Adds all logs of the enclave to the witnesses. */
    async introduceLogs() {
      await writeLogList(logsFile, readLogKeys(enclave.fields))
      for (const witness of witnesses) {
        await witness.kill('SIGTERM')
        await witness.start()
      }
    },
    /** Resolves when the coordinator can sign. With a log, that is some time after it serves. */
    async untilReady(timeoutMs = READY_MS) {
      const until = performance.now() + timeoutMs
      for (;;) {
        const answer = await fetch(`${url}/health/ready`).catch((error: Error) => error)
        if (answer instanceof Response && answer.ok) return void (await answer.body?.cancel())
        const text = answer instanceof Response ? await answer.text() : String(answer.cause ?? answer)
        if (performance.now() > until) throw new Error(`coordinator not ready: ${text}`)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    /** The coordinator's listening address. */
    address: String(coordinator.fields.address),
    enclaveUrl,
    /** Fields of the enclave's "started" log line. */
    enclaveFields: () => enclave.fields,
    databaseUrl,
    /** Folder of the embedded IPFS node. */
    dataDir,
    rootSecretFile,
    oidc,
    satellite,
    /** Output of all coordinators and enclaves. */
    logs: () => output.join('\n'),
    /** Undefined for a process that has ended. */
    pids: () => ({ enclave: toPid(enclave), coordinator: toPid(coordinator) }),
    stopCoordinator: (signal: NodeJS.Signals) => coordinator.service.kill(signal),
    wakeCoordinator: () => coordinator.service.wake(),
    isCoordinatorFrozen: async () =>
      /^State:\s+T/m.test(await readFile(`/proc/${coordinator.service.pid}/status`, 'utf8')),
    /** Resolves when the coordinator's process has ended. */
    coordinatorEnded: () => coordinator.service.ended,
    /** Starts the coordinator with these environment variables, without those of earlier starts. */
    async startCoordinator(changes: Environment = {}) {
      coordinator = await startCoordinator(changes)
    },
    /** Starts another coordinator on a separate port, by default with the same database and enclave. */
    async startSecond(changes: Environment = {}) {
      const { service } = await startCoordinator({ ...changes, PORT: String(secondPort) })
      return { url: secondUrl, stop: () => service.kill('SIGKILL') }
    },
    stopEnclave: (signal: NodeJS.Signals) => enclave.service.kill(signal),
    freezeEnclave: () => enclave.service.freeze(),
    wakeEnclave: () => enclave.service.wake(),
    /** Starts another enclave with the same root secret and log on a separate port. Returns its URL. */
    async startSecondEnclave() {
      const { fields } = await start('enclave', programs.enclave, { ...enclaveEnv, PORT: '0' })
      return String(fields.address)
    },
    /** Starts the enclave on the same port with the same root secret. */
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
