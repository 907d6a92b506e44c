import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OidcAccount } from '../localPeople.ts'
import { startOidcProvider } from '../oidc.ts'
import { layPglite } from '../pglite.ts'
import { findFreePorts } from '../ports.ts'
import { startPostgres } from '../postgres.ts'
import { startSatellite } from '../satellite.ts'
import { type Environment, noRateLimits, toCoordinatorEnv, toEnclaveEnv } from './environments.ts'
import { mains, toMains, toPath } from './paths.ts'
import { allStarted, type Scope, startInScope } from './scope.ts'
import { startService } from './startService.ts'

export type StartBackendParameters = {
  kind: 'pglite' | 'postgres'
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
  /** As for `startService`. */
  hasCompileCache?: boolean
  /** Enclave and coordinator are those of another checkout, in this folder, to compare with. */
  checkout?: string | undefined
}

/** Replaced where a database must fail to start. */
type StartBackendDeps = { startPostgres: typeof startPostgres }

export type Backend = Awaited<ReturnType<typeof startBackend>>

const accounts: readonly OidcAccount[] = ['alice', 'bob', 'carol', 'dave', 'erin'].map((sub) => ({
  sub,
  email: `${sub}@example.com`,
  name: `The one called ${sub}`,
}))

/** A coordinator that kills or freezes itself at a named point of its life. */
const CRASHING_COORDINATOR = toPath('services/coordinator/test/crashingMain.ts')

/** The whole backend on loopback: identity provider and satellite here, database, enclave and coordinator as processes. */
export function startBackend(parameters: StartBackendParameters, deps: StartBackendDeps = { startPostgres }) {
  return startInScope((scope) => startParts(deps, parameters, scope))
}

async function startParts(deps: StartBackendDeps, parameters: StartBackendParameters, scope: Scope) {
  const { kind, env: coordinatorChanges = {}, enclaveEnv: enclaveChanges = {}, quoteLatencyMs = 5 } = parameters
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
  const enclaveEnv = {
    ...toEnclaveEnv({
      rootSecretFile,
      oidc,
      entropyKey: (parameters.satellite ?? satellite).publicKey,
      quoteLatencyMs,
    }),
    ...enclaveChanges,
  }
  const dataDir = join(folder, 'data')
  const [started, databaseUrl] = await allStarted([
    start('enclave', programs.enclave, enclaveEnv),
    parameters.databaseUrl ?? createDatabase(deps, kind, { scope, dataDir }),
  ])
  let enclave = started
  const enclaveUrl = String(enclave.fields.address)

  const env: Environment = {
    ...toCoordinatorEnv({
      port,
      oidc,
      enclaveUrls: [enclaveUrl],
      satellite: parameters.satellite ?? satellite,
      dataDir,
      databaseUrl,
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
    /** Where it listens. */
    address: String(coordinator.fields.address),
    enclaveUrl,
    /** What the enclave said of itself when it started. */
    enclaveFields: () => enclave.fields,
    /** Undefined where the database is embedded. */
    databaseUrl,
    /** Of the embedded database. */
    dataDir,
    rootSecretFile,
    oidc,
    satellite,
    /** All that coordinators and enclaves have written. */
    logs: () => output.join('\n'),
    pids: () => ({ enclave: enclave.service.pid, coordinator: coordinator.service.pid }),
    stopCoordinator: (signal: NodeJS.Signals) => coordinator.service.kill(signal),
    wakeCoordinator: () => coordinator.service.wake(),
    isCoordinatorFrozen: async () =>
      /^State:\s+T/m.test(await readFile(`/proc/${coordinator.service.pid}/status`, 'utf8')),
    /** Resolves when the coordinator's process has ended. */
    coordinatorEnded: (): Promise<unknown> => coordinator.service.ended,
    /** With these keys in its environment, and no others of earlier starts. */
    async startCoordinator(changes: Environment = {}) {
      coordinator = await startCoordinator(changes)
    },
    /** Another coordinator on the same database, at a port of its own. */
    async startSecond() {
      const { service } = await startCoordinator({ PORT: String(secondPort) })
      return { url: secondUrl, stop: () => service.kill('SIGKILL') }
    },
    stopEnclave: (signal: NodeJS.Signals) => enclave.service.kill(signal),
    freezeEnclave: () => enclave.service.freeze(),
    wakeEnclave: () => enclave.service.wake(),
    /** On the same port, with the same root secret. */
    async startEnclave() {
      enclave = await start('enclave', programs.enclave, { ...enclaveEnv, PORT: new URL(enclaveUrl).port })
    },
  }
}

async function createDatabase(
  { startPostgres }: StartBackendDeps,
  kind: StartBackendParameters['kind'],
  { scope, dataDir }: { scope: Scope; dataDir: string },
): Promise<string | undefined> {
  if (kind === 'pglite') {
    await layPglite(join(dataDir, 'database'))
    return undefined
  }
  const postgres = scope.add(await startPostgres({ isDurable: false }), ({ stop }) => stop())
  return postgres.createDatabase()
}
