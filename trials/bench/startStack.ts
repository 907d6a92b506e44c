import { type BackendLog, startBackend } from '@countersign/testing'
import { type Environment, type LogFields, type Service, startService, toPath } from '@countersign/testing/launcher'
import { createAccounts } from '@countersign/testing/stack'

export const QUOTE_MS = 39

/** A program of the bench in a process of its own, with the fields of the line that says that it serves. */
export type Program = { service: Service; url: string; fields: LogFields }

/** Provider, enclave and coordinator on PostgreSQL, as they would run: nothing is limited, and nothing compiled beforehand. */
export function startStack(parameters: {
  satellite: Program
  databaseUrl: string
  /** Signatures that one quote covers. */
  limit: number
  /** Who can sign in. */
  users: number
  /** Of the receipts of transactions. */
  receiptVersion?: 1 | 2
  /** As for `startBackend`, and the next too. */
  checkout?: string | undefined
  log?: BackendLog
  /** Added to that of both. */
  env?: Environment
  /** Where the coordinator's metrics are served. */
  metricsPort?: number
}) {
  const { satellite, databaseUrl, limit, users, receiptVersion = 1, checkout, log, env, metricsPort } = parameters
  return startBackend({
    databaseUrl,
    satellite: { url: satellite.url, publicKey: String(satellite.fields.publicKey) },
    accounts: createAccounts(users),
    quoteLatencyMs: QUOTE_MS,
    env: {
      BATCH_LIMIT: String(limit),
      RECEIPTS: String(receiptVersion),
      ...(metricsPort !== undefined && { METRICS_PORT: String(metricsPort) }),
      ...env,
    },
    enclaveEnv: { BATCH_LIMIT: String(limit), ...env },
    hasCompileCache: false,
    checkout,
    log,
  })
}

export const startSatelliteServer = () => startProgram('satellite', 'trials/satelliteServer.ts')

export const startEchoServer = (env?: Environment) => startProgram('echo server', 'trials/bench/echoServer.ts', env)

/** A process that has services be so far away. */
export const startDelay = (delayMs: number) =>
  startProgram('delay', 'trials/bench/delayServer.ts', { DELAY_MS: String(delayMs) })

/** Where a service is, that much further off. */
export async function delay({ url }: Program, target: string): Promise<string> {
  const response = await fetch(url, { method: 'POST', body: target })
  return response.text()
}

async function startProgram(name: string, main: string, env: Environment = {}): Promise<Program> {
  const service = startService({ name, main: toPath(main), env, hasCompileCache: false })
  const fields = await service.started
  return { service, url: String(fields.address), fields }
}

export const stopProgram = ({ service }: Program) => service.stop()
