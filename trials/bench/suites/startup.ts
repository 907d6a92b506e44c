import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { findFreePorts, startOidcProvider } from '@countersign/testing'
import {
  describeEnd,
  type Environment,
  mains,
  noRateLimits,
  startService,
  toCoordinatorEnv,
  toEnclaveEnv,
} from '@countersign/testing/launcher'
import { median, withScope } from '@countersign/testing/stack'
import { describeCalm, repeatCalmly } from '../repeatCalmly.ts'
import { type Report, type Run, toRow } from '../report.ts'
import { QUOTE_MS } from '../signer.ts'
import { openBench } from '../stack.ts'

const GOLDEN = 'packages/receipt/spec/golden'

/**
 * From the start of a process to the first 200 of its health check: with nothing there, neither secret nor schema, and once more on
 * what that start has left behind. Beside a Node that does nothing. And the verifier's command, which ends by itself.
 */
export function benchStartup({ rounds, isQuick, say }: Run): Promise<Report> {
  return withScope(async (scope) => {
    const { add, createFolder } = scope
    const { postgres, satellite } = await openBench(scope)
    const [port = 0] = await findFreePorts(1)
    const oidc = add(
      await startOidcProvider({ redirectUris: [`http://localhost:${port}/auth/google/callback`], accounts: [] }),
      ({ stop }) => stop(),
    )
    const folder = await createFolder()
    const toFolder = (name: string, round: number) => join(folder, `${name}-${round}`)
    const toSecretEnv = (rootSecretFile: string, enclavePort: number) =>
      toEnclaveEnv({
        port: enclavePort,
        rootSecretFile,
        oidc,
        entropyKey: String(satellite.fields.publicKey),
        quoteLatencyMs: QUOTE_MS,
      })
    const enclave = add(
      startService({ name: 'enclave', main: mains.enclave, env: toSecretEnv(join(folder, 'root-secret'), 0) }),
      (service) => service.stop(),
    )
    const { address } = await enclave.started
    const toServiceEnv = (databaseUrl: string) => ({
      ...toCoordinatorEnv({
        port,
        oidc,
        enclaveUrls: [String(address)],
        satellite: { url: satellite.url, publicKey: String(satellite.fields.publicKey) },
        databaseUrl,
      }),
      ...noRateLimits,
    })
    const ready = `http://127.0.0.1:${port}/health/ready`

    const calm = await repeatCalmly({ rounds, isQuick }, async (round) => {
      say(`round ${round + 1}`)
      const [enclavePort = 0] = await findFreePorts(1)
      const enclaveEnv = toSecretEnv(toFolder('root-secret', round), enclavePort)
      const onPostgres = toServiceEnv(await postgres.createDatabase())
      const health = `http://127.0.0.1:${enclavePort}/health`
      return {
        nothing: await timeToEnd(['-e', '']),
        enclave: await timeToReady('enclave', enclaveEnv, health),
        postgres: await timeToReady('coordinator', onPostgres, ready),
        postgresAgain: await timeToReady('coordinator', onPostgres, ready),
        verifier: await timeToEnd([
          ...['-C', 'source', 'apps/verifier/src/cli.ts', 'verify', `${GOLDEN}/receipt.json`],
          ...['--collateral', `${GOLDEN}/collateral.json`, '--offline', '--allow-mock'],
        ]),
      }
    })
    const of = (name: keyof (typeof calm.repeats)[number]) => median(calm.repeats.map((repeat) => repeat[name]))
    const toSeconds = (name: string, value: number) =>
      toRow(name, value / 1000, 's', { 'a Node that does nothing': value / of('nothing') })
    return {
      suite: 'startup',
      title: 'Start-up',
      setting:
        'From the start of the process to the first 200 of `/health/ready` (of the enclave: `/health`), run from source; ' +
        `median of ${calm.repeats.length} rounds, ${describeCalm([calm])}.`,
      rows: [
        toSeconds('a Node that does nothing', of('nothing')),
        toSeconds('enclave', of('enclave')),
        toSeconds('coordinator, new PostgreSQL database', of('postgres')),
        toSeconds('coordinator, PostgreSQL, again', of('postgresAgain')),
        toSeconds('verifier, one receipt, to its end', of('verifier')),
      ],
    }
  })
}

async function timeToReady(name: 'enclave' | 'coordinator', env: Environment, url: string): Promise<number> {
  const start = performance.now()
  const service = startService({ name, main: mains[name], env, hasCompileCache: false })
  try {
    const ended = service.ended.then((end) => Promise.reject(new Error(describeEnd(name, end))))
    await Promise.race([untilReady(url), ended])
    return performance.now() - start
  } finally {
    await service.stop()
  }
}

async function timeToEnd(parameters: readonly string[]): Promise<number> {
  const start = performance.now()
  const { PATH = '' } = process.env
  const child = spawn(process.execPath, parameters, { env: { PATH }, stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit')
  // 2: the golden receipt verifies, and no anchors say which code to trust.
  if (code !== 0 && code !== 2) throw new Error(`${parameters.join(' ')} ended with ${code}`)
  return performance.now() - start
}

/** Resolves with the first 200 at this address. */
async function untilReady(url: string): Promise<void> {
  for (;;) {
    const response = await fetch(url).catch(() => undefined)
    await response?.body?.cancel()
    if (response?.status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
