import { type Backend, type BackendLog, startBackend, startPostgres, type TestPostgres } from '@countersign/testing'
import { type Environment, type LogFields, type Service, startService, toPath } from '@countersign/testing/launcher'
import { createAccounts, type Scope } from '@countersign/testing/stack'
import { type Load, QUOTE_MS, signInAll } from './signer.ts'

const BATCH_LIMIT = 256

/** A program of the bench in a separate process, with the fields of the line that says that it serves. */
export type Program = { service: Service; url: string; fields: LogFields }

/** A service that is measured: with the cookies of its users it is a load. */
export type Measured = Load & { databaseUrl: string; stack: Backend }

type Changes = {
  /** Signatures that one quote covers. */
  limit?: number
  /** Who sign in, and have cookies. */
  users?: number
  /** Who can sign in; those users unless there are more. */
  accounts?: number
  receiptVersion?: 1 | 2
  checkout?: string | undefined
  log?: BackendLog
  /** Where the coordinator's metrics are served. */
  metricsPort?: number
}

export type Bench = {
  postgres: TestPostgres
  satellite: Program
  /** Provider, enclave and coordinator on a new database, as they would run: nothing is limited, and nothing compiled beforehand. */
  start(changes?: Changes): Promise<Measured>
}

/** PostgreSQL and a satellite, and any number of services that share them. */
export async function openBench(scope: Scope, settings?: Readonly<Record<string, string>>): Promise<Bench> {
  const postgres = scope.add(await startPostgres(settings && { settings }), ({ stop }) => stop())
  const satellite = await startProgram(scope, 'satellite', 'trials/satelliteServer.ts')
  return {
    postgres,
    satellite,
    async start(changes = {}) {
      const {
        limit = BATCH_LIMIT,
        users = 8,
        accounts = users,
        receiptVersion = 1,
        checkout,
        log,
        metricsPort,
      } = changes
      const databaseUrl = await postgres.createDatabase()
      const stack = scope.add(
        await startBackend({
          databaseUrl,
          satellite: { url: satellite.url, publicKey: String(satellite.fields.publicKey) },
          accounts: createAccounts(accounts),
          quoteLatencyMs: QUOTE_MS,
          env: {
            BATCH_LIMIT: String(limit),
            RECEIPTS: String(receiptVersion),
            ...(metricsPort !== undefined && { METRICS_PORT: String(metricsPort) }),
          },
          enclaveEnv: { BATCH_LIMIT: String(limit) },
          hasCompileCache: false,
          checkout,
          log,
        }),
        ({ stop }) => stop(),
      )
      await stack.untilReady()
      return { databaseUrl, stack, url: stack.address, cookies: await signInAll(stack, users) }
    },
  }
}

export const startEchoServer = (scope: Scope, env?: Environment) =>
  startProgram(scope, 'echo server', 'trials/bench/echoServer.ts', env)

/** A process that has services be so far away. */
export const startDelay = (scope: Scope, delayMs: number) =>
  startProgram(scope, 'delay', 'trials/bench/delayServer.ts', { DELAY_MS: String(delayMs) })

/** Where a service is, that much further off. */
export async function delay({ url }: Program, target: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', body: target })
  return response.text()
}

async function startProgram(scope: Scope, name: string, main: string, env: Environment = {}): Promise<Program> {
  const service = startService({ name, main: toPath(main), env, hasCompileCache: false })
  scope.add(service, ({ stop }) => stop())
  const fields = await service.started
  return { service, url: String(fields.address), fields }
}
