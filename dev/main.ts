import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { styleText } from 'node:util'
import { startOidcProvider, startSatellite } from '@countersign/testing'
import { startDevChain, toChainEnv } from './chain.ts'
import { type Options, parseOptions, USAGE } from './options.ts'
import { isPortFree } from './ports.ts'
import { type Service, startService } from './service.ts'
import { clearState, loadState } from './state.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
/** Where the web app will be. */
const APP_ORIGIN = 'http://localhost:5173'
/** After this long a service that does not stop is killed. */
const STOP_TIMEOUT_MS = 30_000
const COLOURS = { enclave: 'magenta', coordinator: 'cyan', chain: 'yellow', dev: 'green' } as const

/** Something that the reader can do something about; its message is all there is to say. */
class StackError extends Error {}

type Part = { stop(): Promise<void> }

function say(name: keyof typeof COLOURS, line: string) {
  process.stdout.write(`${styleText(COLOURS[name], name.padEnd(11), { stream: process.stdout })} ${line}\n`)
}

async function assertPortsFree({ ports }: Options) {
  const flags = {
    coordinator: '--port',
    enclave: '--enclave-port',
    oidc: '--oidc-port',
    chain: '--chain-port',
  } as const
  const taken: string[] = []
  for (const [name, port] of Object.entries(ports) as [keyof typeof flags, number][]) {
    if (!(await isPortFree(port))) {
      taken.push(`Port ${port} is taken: end what uses it, or choose another with ${flags[name]}.`)
    }
  }
  if (taken.length > 0) throw new StackError(taken.join('\n'))
}

/** Starts everything in order. What has been started is in `parts` even when the rest fails. */
async function startStack(options: Options, parts: Part[], isStopping: () => boolean, onDeath: (how: string) => void) {
  const { ports, databaseUrl, quoteLatencyMs } = options
  const stateDir = options.stateDir === undefined ? resolve(ROOT, '.countersign') : resolve(options.stateDir)
  // Before anything is deleted: a stack that is running has its ports.
  await assertPortsFree(options)
  if (options.reset) await clearState(stateDir)
  const { oidcClientSecret } = await loadState(stateDir)
  const publicUrl = `http://localhost:${ports.coordinator}`

  const oidc = await startOidcProvider({
    port: ports.oidc,
    clientSecret: oidcClientSecret,
    redirectUris: [`${publicUrl}/auth/google/callback`],
  })
  parts.push(oidc)
  const satellite = await startSatellite()
  parts.push(satellite)
  const chain = await startDevChain({ port: ports.chain, stateDir, onNote: (text) => say('chain', text) })
  parts.push(chain)

  async function run(name: 'enclave' | 'coordinator', env: Record<string, string>) {
    if (isStopping()) return
    const service = startService({
      name,
      main: resolve(ROOT, `services/${name}/src/main.ts`),
      env: { MOCK_ATTESTATION: 'true', PORT: String(ports[name]), ...env },
      onLine: (line) => say(name, line),
    })
    parts.push({ stop: () => stopService(service) })
    void service.ended.then(({ how }) => isStopping() || onDeath(`The ${name} ${how}; its last lines say why.`))
    // One that dies is told by onDeath.
    await service.ready.catch(() => {})
  }
  await run('enclave', {
    QUOTE_SOURCE: 'mock',
    MOCK_QUOTE_LATENCY_MS: String(quoteLatencyMs),
    ROOT_SECRET: `file:${resolve(stateDir, 'enclave/root-secret')}`,
    OIDC_ISSUERS: `${oidc.issuer}=${oidc.clientId}`,
  })
  await run('coordinator', {
    PUBLIC_URL: publicUrl,
    // Both are sites of localhost, where lax is enough; plain http allows no more.
    COOKIE_SAMESITE: 'lax',
    ALLOWED_ORIGINS: `${publicUrl},${APP_ORIGIN}`,
    OIDC_GOOGLE_ISSUER: oidc.issuer,
    OIDC_GOOGLE_CLIENT_ID: oidc.clientId,
    OIDC_GOOGLE_CLIENT_SECRET: oidc.clientSecret,
    ENCLAVE_URL: `http://127.0.0.1:${ports.enclave}`,
    ENTROPY_URL: satellite.url,
    ENTROPY_PUBLIC_KEY: satellite.publicKey,
    DATA_DIR: stateDir,
    ...toChainEnv(chain),
    // The coordinator is its own gateway.
    IPFS_GATEWAY_URL: publicUrl,
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
  })
  if (isStopping()) return
  const lines = [
    'Countersign is running, with simulated silicon: nothing here proves anything about hardware.',
    `  Sign in     ${publicUrl}/auth/google?return_to=${publicUrl}/docs`,
    `  API         ${publicUrl}/docs`,
    `  Health      ${publicUrl}/health/ready`,
    `  Attestation ${publicUrl}/health/attestation`,
    `  Sign-in by  ${oidc.issuer} (anybody can be anybody)`,
    `  Chain       ${chain.url} (id ${chain.chainId}; POST ${chain.url}/faucet {"address":"0x…"} sends 1 ether)`,
    `  Contract    ${chain.contract}`,
    `  Database    ${databaseUrl === undefined ? `embedded, in ${stateDir}` : 'PostgreSQL'}`,
    'Ctrl-C stops it.',
  ]
  for (const line of lines) say('dev', line)
}

/** One that is just starting may be making its database: it is stopped when it serves. */
async function stopService(service: Service) {
  if (service.hasEnded()) return
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    service.signal('SIGKILL')
  }, STOP_TIMEOUT_MS)
  await service.ready.catch(() => {})
  service.signal('SIGTERM')
  const { isClean, how } = await service.ended
  clearTimeout(timer)
  if (isLate) throw new StackError(`The ${service.name} did not stop in ${STOP_TIMEOUT_MS / 1000} s and was killed.`)
  if (!isClean) throw new StackError(`The ${service.name} ${how} while stopping.`)
}

/** Runs until it is told to stop, or something dies. Answers the exit code. */
async function run(options: Options): Promise<number> {
  const parts: Part[] = []
  const faults: string[] = []
  const fault = (error: unknown) => void faults.push(error instanceof Error ? error.message : String(error))
  let isStopping = false
  let end = () => {}
  const over = new Promise<void>((resolve) => {
    end = resolve
  })
  const stop = () => {
    isStopping = true
    end()
  }
  // At a terminal a second Ctrl-C, for the impatient, finds no listener and ends us; the services see their input close.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, stop)
  const onDeath = (how: string) => {
    faults.push(how)
    stop()
  }
  const starting = startStack(options, parts, () => isStopping, onDeath).catch((error: unknown) => {
    // A port can be taken between the look and the use.
    fault(error)
    stop()
  })
  await over
  // A service that is still starting has to be known before it can be stopped; stopping it lets the start go on to its end.
  while (parts.length > 0) await parts.pop()?.stop().catch(fault)
  await starting
  while (parts.length > 0) await parts.pop()?.stop().catch(fault)
  for (const text of faults) process.stderr.write(`${text}\n`)
  if (faults.length === 0) say('dev', 'Stopped.')
  return faults.length === 0 ? 0 : 1
}

const parsed = parseOptions(process.argv.slice(2))
if (parsed.kind === 'help') {
  console.log(USAGE)
} else if (parsed.kind === 'fault') {
  console.error(`${parsed.fault}\n\n${USAGE}`)
  process.exitCode = 2
} else {
  process.exitCode = await run(parsed.options)
}
