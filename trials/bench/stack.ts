import { type Backend, type BackendLog, startBackend, startPostgres } from '@countersign/testing'
import { type Environment, startService, toPath } from '@countersign/testing/launcher'
import { createAccounts, type Scope } from '@countersign/testing/stack'
import { QUOTE_MS, signInAll } from './load.ts'

const BATCH_LIMIT = 256
const USERS = 8

/** A measured service with the session cookies of its users. */
export type Measured = { urls: [string]; url: string; cookies: string[]; databaseUrl: string; stack: Backend }

export type Changes = {
  limit?: number
  receipts?: 1 | 2
  /** One by default. */
  enclaves?: 2
  /** Folder of the checkout to start. Default: this one. */
  checkout?: string
  log?: BackendLog
}

export type Bench = Awaited<ReturnType<typeof openBench>>

/** Starts PostgreSQL and a satellite, which any number of services share. */
export async function openBench(scope: Scope, settings?: Readonly<Record<string, string>>) {
  const postgres = scope.add(await startPostgres(settings && { settings }), ({ stop }) => stop())
  const satellite = await startProgram(scope, 'satellite', 'trials/satelliteServer.ts')
  return {
    postgres,
    /** Starts provider, enclaves and coordinator on a new database, without limits or compile cache. */
    async start({ limit = BATCH_LIMIT, receipts = 1, enclaves, checkout, log }: Changes = {}): Promise<Measured> {
      const databaseUrl = await postgres.createDatabase()
      const stack = await startBackend({
        databaseUrl,
        satellite: { url: satellite.url, publicKey: String(satellite.fields.publicKey) },
        accounts: createAccounts(USERS),
        quoteLatencyMs: QUOTE_MS,
        env: { BATCH_LIMIT: String(limit), RECEIPTS: String(receipts) },
        enclaveEnv: { BATCH_LIMIT: String(limit) },
        hasCompileCache: false,
        checkout,
        log,
      })
      scope.add(stack, ({ stop }) => stop())
      if (enclaves === 2) {
        await stack.stopCoordinator('SIGTERM')
        await stack.startCoordinator({ ENCLAVE_URL: `${stack.enclaveUrl},${await stack.startSecondEnclave()}` })
      }
      await stack.untilReady()
      const url = stack.address
      return { databaseUrl, stack, url, urls: [url], cookies: await signInAll(stack, USERS) }
    },
  }
}

/** Starts a program in a separate process. Returns the fields of its "started" log line. */
export async function startProgram(scope: Scope, name: string, main: string, env: Environment = {}) {
  const service = startService({ name, main: toPath(main), env, hasCompileCache: false })
  scope.add(service, ({ stop }) => stop())
  const fields = await service.started
  return { service, url: String(fields.address), fields }
}
