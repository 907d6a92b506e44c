import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Options } from './options.ts'
import { isPortFree } from './ports.ts'
import type { Speaker } from './say.ts'
import { type Service, startService } from './service.ts'
import { clearState, loadState } from './state.ts'

const ROOT = resolve(import.meta.dirname, '..')
const WEB_SERVER = fileURLToPath(import.meta.resolve('./webServer.ts'))
/** Compiled code of all processes, which take half as long to load with it. */
export const COMPILE_CACHE = resolve(ROOT, 'node_modules/.cache/countersign-dev')
/** After this long a service that does not stop is killed. */
const STOP_TIMEOUT_MS = 30_000

/** Something that the reader can do something about; its message is all there is to say. */
class StackError extends Error {}

type Part = { stop(): Promise<void> }
type PartName = Exclude<Speaker, 'dev'>

/** Nobody is stopped before those who call it. */
const STOP_ORDER: readonly PartName[] = ['web', 'coordinator', 'enclave', 'chain', 'satellite', 'oidc']

export type Stack = {
  /** The lines that say where everything is; undefined when it was stopped, or failed, before all was ready. */
  ready: Promise<readonly string[] | undefined>
  /** Stops whatever runs, or is just starting. */
  stop(): Promise<void>
}

export type StartStackParameters = {
  options: Options
  say(name: Speaker, text: string): void
  /** Told of each failure, in starting, running and stopping. Then the rest should be stopped. */
  onFault(text: string): void
}

/** Starts everything, side by side where one does not need the other. */
export function startStack({ options, say, onFault }: StartStackParameters): Stack {
  const { ports, databaseUrl, quoteLatencyMs, hasWeb } = options
  const stateDir = options.stateDir === undefined ? resolve(ROOT, '.countersign') : resolve(options.stateDir)
  const publicUrl = `http://localhost:${ports.coordinator}`
  const webUrl = `http://localhost:${ports.web}`
  const issuer = { url: `http://localhost:${ports.oidc}`, clientId: 'countersign' }
  const parts = new Map<PartName, Part>()
  let isStopping = false

  /** Tells of a start and of its end. A part that fails, or is not started any more, is undefined. */
  async function begin<Result>(name: PartName, start: () => Promise<Result>, what = ''): Promise<Result | undefined> {
    if (isStopping) return undefined
    const startedMs = performance.now()
    say(name, `starting${what}`)
    try {
      const result = await start()
      if (!isStopping) say(name, `ready (${toSeconds(performance.now() - startedMs)})`)
      return result
    } catch (error) {
      onFault(toMessage(error))
      return undefined
    }
  }

  /** For parts in this process, which can be stopped when they have started. */
  const beginHere = <Result extends Part>(name: PartName, start: () => Promise<Result>) =>
    begin(name, async () => {
      const part = await start()
      parts.set(name, part)
      return part
    })

  /** For parts with a process each. What a service says of itself comes with it. */
  async function beginService(
    name: 'enclave' | 'coordinator' | 'web',
    { env, words = name, what }: { env: Record<string, string>; words?: string; what?: string },
  ) {
    let service: Service | undefined
    const about = await begin(
      name,
      async () => {
        service = startService({
          name: words,
          main: name === 'web' ? WEB_SERVER : resolve(ROOT, `services/${name}/src/main.ts`),
          env: { NODE_COMPILE_CACHE: COMPILE_CACHE, PORT: String(ports[name]), ...env },
          takesMessages: name === 'web',
          onLine: (line) => say(name, line),
        })
        const { ended, ready } = service
        parts.set(name, { stop: () => stopService(service as Service) })
        void ended.then(({ how, lastLines }) => {
          if (!isStopping) onFault(describeDeath(words, how, lastLines))
        })
        // One that dies is told above.
        return ready.catch(() => undefined)
      },
      what,
    )
    return service === undefined || about === undefined ? undefined : { ...service, about }
  }

  const beginEnclave = () =>
    beginService('enclave', {
      env: {
        MOCK_ATTESTATION: 'true',
        QUOTE_SOURCE: 'mock',
        MOCK_QUOTE_LATENCY_MS: String(quoteLatencyMs),
        ROOT_SECRET: `file:${resolve(stateDir, 'enclave/root-secret')}`,
        OIDC_ISSUERS: `${issuer.url}=${issuer.clientId}`,
      },
    })

  const beginWeb = () =>
    hasWeb ? beginService('web', { words: 'web app', env: { CACHE_DIR: resolve(stateDir, 'web') } }) : undefined

  /** Provider, satellite and chain, then the coordinator, which is told of them. */
  async function beginCoordinator(clientSecret: string) {
    // Loaded here, when the processes that need none of it are under way: it takes a second.
    const [{ startOidcProvider, startSatellite }, { startDevChain, toChainEnv }] = await Promise.all([
      import('@countersign/testing'),
      import('./chain.ts'),
    ])
    const [oidc, satellite, chain] = await Promise.all([
      beginHere('oidc', () =>
        startOidcProvider({
          port: ports.oidc,
          clientId: issuer.clientId,
          clientSecret,
          redirectUris: [`${publicUrl}/auth/google/callback`],
        }),
      ),
      beginHere('satellite', () => startSatellite()),
      beginHere('chain', () => startDevChain({ port: ports.chain, stateDir, onNote: (text) => say('chain', text) })),
    ])
    if (oidc === undefined || satellite === undefined || chain === undefined) return undefined
    const coordinator = await beginService('coordinator', {
      what: ', with database, IPFS node and worker',
      env: {
        MOCK_ATTESTATION: 'true',
        PUBLIC_URL: publicUrl,
        // Both are sites of localhost, where lax is enough; plain http allows no more.
        COOKIE_SAMESITE: 'lax',
        // Sign-in returns to the first: to the app, where there is one. One that somebody starts by hand may call too.
        ALLOWED_ORIGINS: (hasWeb ? [webUrl, publicUrl] : [publicUrl, webUrl]).join(),
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
      },
    })
    return coordinator && { satellite, chain }
  }

  async function start(): Promise<readonly string[] | undefined> {
    // Before anything is deleted: a stack that is running has its ports.
    await assertPortsFree(options)
    if (options.reset) await clearState(stateDir)
    const { oidcClientSecret } = await loadState(stateDir)
    // Each tells its own failure, and all are known when the last has ended: then they can be stopped.
    const [enclave, web, served] = await Promise.all([beginEnclave(), beginWeb(), beginCoordinator(oidcClientSecret)])
    if (isStopping || enclave === undefined || served === undefined || (hasWeb && web === undefined)) return undefined
    const { chain, satellite } = served
    if (web !== undefined) {
      const { createWebConfig } = await import('./webConfig.ts')
      const answer = await fetch(`${publicUrl}/health/attestation`)
      if (!answer.ok) throw new StackError(`The coordinator has no attestation: ${answer.status}.`)
      const coordinator = (await answer.json()) as Record<string, unknown>
      web.send(createWebConfig({ publicUrl, chain, enclave: enclave.about, coordinator, satellite }))
    }
    return [
      ...(hasWeb ? [`Open        ${webUrl}`] : []),
      `Sign in     ${publicUrl}/auth/google?return_to=${publicUrl}/docs`,
      `API         ${publicUrl}/docs`,
      `Health      ${publicUrl}/health/ready`,
      `Attestation ${publicUrl}/health/attestation`,
      `Sign-in by  ${issuer.url} (anybody can be anybody)`,
      `Chain       ${chain.url} (id ${chain.chainId}; POST ${chain.url}/faucet {"address":"0x…"} sends 1 ether)`,
      `Contract    ${chain.contract}`,
      `Database    ${databaseUrl === undefined ? `embedded, in ${stateDir}` : 'PostgreSQL'}`,
    ]
  }

  async function stopParts() {
    for (const name of STOP_ORDER) {
      const part = parts.get(name)
      parts.delete(name)
      await part?.stop().catch((error: unknown) => onFault(toMessage(error)))
    }
  }

  const ready = start().catch((error: unknown) => {
    // A stop takes away what the start was about to ask.
    if (!isStopping) onFault(toMessage(error))
    return undefined
  })
  return {
    ready,
    async stop() {
      isStopping = true
      // What is known by now; that lets the start come to its end, and then everything is known.
      await stopParts()
      await ready
      await stopParts()
    },
  }
}

async function assertPortsFree({ ports, hasWeb }: Options) {
  const flags = {
    web: '--web-port',
    coordinator: '--port',
    enclave: '--enclave-port',
    oidc: '--oidc-port',
    chain: '--chain-port',
  } as const
  const taken: string[] = []
  for (const [name, port] of Object.entries(ports) as [keyof typeof flags, number][]) {
    if (name === 'web' && !hasWeb) continue
    if (!(await isPortFree(port))) {
      taken.push(`Port ${port} is taken: end what uses it, or choose another with ${flags[name]}.`)
    }
  }
  if (taken.length > 0) throw new StackError(taken.join('\n'))
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

function describeDeath(name: string, how: string, lastLines: readonly string[]): string {
  if (lastLines.length === 0) return `The ${name} ${how}, and said nothing.`
  return [`The ${name} ${how}. Its last lines:`, ...lastLines.map((line) => `  ${line}`)].join('\n')
}

export function toSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
