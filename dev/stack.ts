import { isAbsolute, join, relative, resolve } from 'node:path'
import {
  describeEnd,
  type Environment,
  type LogFields,
  mains,
  PAGE_CLIENT_ID,
  type Service,
  startPostgres,
  startService,
  toCoordinatorEnv,
  toEnclaveEnv,
  toPath,
  toWebEnv,
} from '@countersign/testing/launcher'
import { buildDocs } from './docs.ts'
import { toHumanLine } from './humanLine.ts'
import { IMPLEMENTATION } from './implementation.ts'
import { lockState } from './lockState.ts'
import { type DevLog, prepareLog, startWitnesses, untilOpen } from './log.ts'
import type { Options } from './options.ts'
import { isPortFree } from './ports.ts'
import { assertSupported, clearState, loadState, POSTGRES, writeManifest } from './state.ts'
import type { Speaker, Voice } from './voice.ts'

type Part = { stop(): Promise<void> }
type PartName = Exclude<Speaker, 'dev'>

/** A part stops after the parts that call it. */
const STOP_ORDER: readonly PartName[] = [
  'web',
  'coordinator',
  'enclave',
  'witnesses',
  'database',
  'chain',
  'satellite',
  'oidc',
]

/** The address of each part. */
type Summary = {
  /** The app that signs in directly, the web app, or the documentation. */
  openUrl: string
  /** By name. Each begins with an address or path. */
  places: Readonly<Record<string, string>>
}

export type Stack = {
  /** Undefined if it was stopped or failed before everything was ready. */
  ready: Promise<Summary | undefined>
  /** Stops every part that runs or is starting. */
  stop(): Promise<void>
}

export type StartStackParameters = {
  options: Options
  voice: Pick<Voice, 'say' | 'detail' | 'log'>
  /** Receives each failure while starting, running and stopping. The caller should then stop the rest. */
  onFault(text: string): void
  /** Serve a build of the web app: its pages load in a third of the time, but don't follow changes. */
  isWebBuilt?: boolean
  /** Builds the documentation site first. */
  hasDocs?: boolean
}

/** Starts everything, in parallel where possible. */
export function startStack(parameters: StartStackParameters): Stack {
  const { options, voice, onFault, isWebBuilt, hasDocs = false } = parameters
  const { ports, quoteLatencyMs, hasWeb, hasCheckpoints, origins, directUrl } = options
  const stateDir = resolve(options.stateDir ?? toPath('.countersign'))
  const publicUrl = `http://localhost:${ports.coordinator}`
  const webUrl = `http://localhost:${ports.web}`
  const demoUrl = `http://localhost:${ports.demo}`
  const issuer = {
    issuer: `http://localhost:${ports.oidc}`,
    clientId: directUrl === undefined ? 'countersign' : PAGE_CLIENT_ID,
  }
  const apps = directUrl === undefined ? origins : [...origins, new URL(directUrl).origin]
  const parts = new Map<PartName, Part>()
  let isStopping = false
  let unlock: (() => Promise<void>) | undefined

  /** Reports a start and its end. Returns undefined if the part fails or was stopped first. */
  async function begin<Result>(name: PartName, start: () => Promise<Result>, what = ''): Promise<Result | undefined> {
    if (isStopping) return undefined
    const startedMs = performance.now()
    voice.detail(name, `starting${what}`)
    try {
      const result = await start()
      if (!isStopping) voice.say(name, `ready (${toSeconds(performance.now() - startedMs)})`)
      return result
    } catch (error) {
      onFault(toMessage(error))
      return undefined
    }
  }

  /** For parts in this process, which can be stopped once they have started. */
  const beginHere = <Result extends Part>(name: PartName, start: () => Promise<Result>) =>
    begin(name, async () => {
      const part = await start()
      parts.set(name, part)
      return part
    })

  /** For parts with a separate process. Returns the service and the fields of its first log line. */
  async function beginService(
    name: 'enclave' | 'coordinator' | 'web',
    { env, words = name, what }: { env: Environment; words?: string; what?: string },
  ): Promise<{ service: Service; fields: LogFields } | undefined> {
    return begin(
      name,
      async () => {
        let isStarting = true
        const service = startService({
          name: words,
          main: mains[name],
          env,
          takesMessages: name === 'web',
          onLine: (line) => voice.log(name, line, { isStarting }),
        })
        parts.set(name, { stop: () => service.stop() })
        void service.ended.then((end) => {
          if (!isStopping) onFault(describeEnd(words, { ...end, lastLines: end.lastLines.map(toPlainLine) }))
        })
        // The exit of a service is reported above.
        const fields = await service.started.catch(() => undefined)
        isStarting = false
        return fields && { service, fields }
      },
      what,
    )
  }

  const beginEnclave = (log: DevLog | undefined) =>
    beginService('enclave', {
      env: {
        ...toEnclaveEnv({
          port: ports.enclave,
          rootSecretFile: resolve(stateDir, 'enclave/root-secret'),
          oidc: issuer,
          quoteLatencyMs,
          log: log?.settings,
        }),
        IMPLEMENTATIONS: IMPLEMENTATION,
        ...(directUrl === undefined ? {} : { SESSIONS: 'bound' }),
      },
    })

  const beginWeb = () =>
    hasWeb
      ? beginService('web', {
          words: 'web app',
          env: toWebEnv({
            port: ports.web,
            demoPort: ports.demo,
            cacheDir: resolve(stateDir, 'web'),
            isBuilt: isWebBuilt,
          }),
        })
      : undefined

  const beginDatabase = async () =>
    options.databaseUrl === undefined
      ? beginHere('database', () => startPostgres({ folder: join(stateDir, POSTGRES) }))
      : { url: options.databaseUrl }

  /** The log's witnesses. They start after the enclave has reported the log's keys. */
  async function beginWitnesses(log: DevLog, enclave: Promise<{ fields: LogFields } | undefined>) {
    const started = await enclave
    if (started === undefined) return undefined
    let isStarting = true
    const witnesses = await begin('witnesses', () =>
      startWitnesses(log, {
        enclave: started.fields,
        onLine: (line) => voice.log('witnesses', line, { isStarting }),
        onStarting: (part) => parts.set('witnesses', part),
        onEnd: (text) => void (isStopping || onFault(text)),
      }),
    )
    isStarting = false
    return witnesses
  }

  /** Starts the identity provider, the entropy source and the chain, then the coordinator, whose environment names them. */
  async function beginCoordinator(
    clientSecret: string,
    { log, enclave }: { log: DevLog | undefined; enclave: ReturnType<typeof beginEnclave> },
  ) {
    const databaseStarting = beginDatabase()
    // Without the site, the coordinator serves only the API reference and the errors.
    const docsBuilding = hasDocs
      ? buildDocs().catch((error: unknown) => voice.say('docs', `not built: ${toMessage(error)}`))
      : undefined
    const witnessesStarting = log === undefined ? { routes: undefined } : beginWitnesses(log, enclave)
    // Loaded here because it takes a second: other processes are already starting.
    const [{ startOidcProvider, startSatellite }, { startDevChain, toChainEnv }, { deployTestToken }] =
      await Promise.all([import('@countersign/testing'), import('./chain.ts'), import('./testToken.ts')])
    const [oidc, satellite, chain, database, witnesses] = await Promise.all([
      beginHere('oidc', () =>
        startOidcProvider({
          port: ports.oidc,
          clientSecret,
          redirectUris: [`${publicUrl}/auth/google/callback`],
          ...(directUrl === undefined ? {} : { pageUris: [directUrl] }),
        }),
      ),
      beginHere('satellite', () => startSatellite()),
      beginHere('chain', () =>
        startDevChain({
          port: ports.chain,
          stateDir,
          logOrigins: hasCheckpoints ? log?.settings.origins : undefined,
          onNote: (text) => voice.say('chain', text),
        }),
      ),
      databaseStarting,
      witnessesStarting,
    ])
    if (oidc === undefined || satellite === undefined || chain === undefined) return undefined
    if (database === undefined || witnesses === undefined) return undefined
    await deployTestToken(chain)
    await docsBuilding
    const coordinator = await beginService('coordinator', {
      what: ', with IPFS node and worker',
      env: {
        ...toCoordinatorEnv({
          port: ports.coordinator,
          // Sign-in returns to the first origin: the web app, if it runs. An app that another program serves may call too.
          allowedOrigins: [...new Set([...(hasWeb ? [webUrl, publicUrl, demoUrl] : [publicUrl, webUrl]), ...apps])],
          oidc: directUrl === undefined ? oidc : issuer,
          enclaveUrls: [`http://127.0.0.1:${ports.enclave}`],
          satellite,
          dataDir: stateDir,
          databaseUrl: database.url,
          witnesses: witnesses.routes,
        }),
        PUBLIC_URL: publicUrl,
        ...toChainEnv(chain),
        // The coordinator is also the gateway.
        IPFS_GATEWAY_URL: publicUrl,
      },
    })
    if (coordinator !== undefined && log !== undefined) await untilOpen(publicUrl, () => isStopping)
    return coordinator && { satellite, chain, witnesses: witnesses.routes }
  }

  async function start(): Promise<Summary | undefined> {
    // Before anything is deleted: a running stack would hold the ports.
    await assertPortsFree(options)
    // A stack with other ports may use the same state.
    unlock = await lockState(stateDir)
    if (options.reset) await clearState(stateDir)
    else await assertSupported(stateDir)
    const { oidcClientSecret } = await loadState(stateDir)
    const log = options.hasLog ? await prepareLog(stateDir) : undefined
    // Each part reports its own failure. After all promises settle, everything can be stopped.
    const starting = beginEnclave(log)
    const [enclave, web, served] = await Promise.all([
      starting,
      beginWeb(),
      beginCoordinator(oidcClientSecret, { log, enclave: starting }),
    ])
    if (isStopping || enclave === undefined || served === undefined || (hasWeb && web === undefined)) return undefined
    const { chain, satellite, witnesses } = served
    const [{ readAnchors }, { createDevManifest, createWebConfig }] = await Promise.all([
      import('@countersign/testing'),
      import('./webConfig.ts'),
    ])
    const anchors = await readAnchors({ url: publicUrl, enclave: enclave.fields, satellite })
    const written = await writeManifest(stateDir, createDevManifest(chain, anchors, witnesses))
    const { manifest } = written
    const manifestFile = toShownPath(written.path)
    web?.service.send({
      web: createWebConfig({ publicUrl, demoUrl, chain, manifest, manifestFile }),
      demo: { apiBaseUrl: publicUrl, webUrl, origin: demoUrl, chainId: chain.chainId, rpcUrl: chain.url },
    })
    return {
      openUrl: directUrl ?? (hasWeb ? webUrl : `${publicUrl}/docs`),
      places: {
        ...(directUrl === undefined
          ? {
              ...(hasWeb ? { 'Demo site': `${demoUrl} (sign in to it with the wallet)` } : {}),
              'Sign in': `${publicUrl}/auth/google?return_to=${publicUrl}/docs`,
            }
          : {}),
        Docs: `${publicUrl}/docs`,
        Health: `${publicUrl}/health/ready`,
        Attestation: `${publicUrl}/health/attestation`,
        'Sign-in by': `${issuer.issuer} (no password: choose a user)`,
        Chain: `${chain.url} (id ${chain.chainId}; POST ${chain.url}/faucet {"address":"0x…"} sends 1 ETH)`,
        Contract: chain.contract,
        ...(chain.logWitness === undefined
          ? {}
          : { Checkpoints: `${chain.logWitness.address} (the contract for checkpoints of the log)` }),
        Delegation: `${IMPLEMENTATION} (code that wallets may delegate to)`,
        Manifest: `${manifestFile} (trust anchors for verifying proofs of this stack)`,
        ...(witnesses === undefined
          ? {}
          : {
              Log: `${publicUrl}/log (one entry per signature)`,
              Witnesses: `${witnesses.map(({ url }) => url).join(' ')} (two of them cosign each signature)`,
            }),
        Database: options.databaseUrl === undefined ? `PostgreSQL, in ${join(stateDir, POSTGRES)}` : 'PostgreSQL',
      },
    }
  }

  async function stopParts() {
    for (const name of STOP_ORDER) {
      const part = parts.get(name)
      parts.delete(name)
      await part?.stop().catch((error: unknown) => onFault(toMessage(error)))
    }
  }

  const ready = start().catch((error: unknown) => {
    // The start may still wait for parts that stopping ends.
    if (!isStopping) onFault(toMessage(error))
    return undefined
  })
  return {
    ready,
    async stop() {
      isStopping = true
      // First the parts that run now, so that the start ends. Then the rest.
      await stopParts()
      await ready
      await stopParts()
      await unlock?.()
    },
  }
}

async function assertPortsFree({ ports, hasWeb }: Options) {
  const flags = {
    web: '--web-port',
    demo: '--demo-port',
    coordinator: '--port',
    enclave: '--enclave-port',
    oidc: '--oidc-port',
    chain: '--chain-port',
  } as const
  const taken: string[] = []
  for (const [name, port] of Object.entries(ports) as [keyof typeof flags, number][]) {
    if ((name === 'web' || name === 'demo') && !hasWeb) continue
    if (!(await isPortFree(port))) {
      taken.push(`Port ${port} is in use. Stop the other process or choose another port with ${flags[name]}.`)
    }
  }
  if (taken.length > 0) throw new Error(taken.join('\n'))
}

export function toSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

/** Relative to the root of the checkout, where npm runs commands; absolute if it is elsewhere. */
function toShownPath(path: string): string {
  const short = relative(toPath('.'), path)
  return isAbsolute(short) || short.startsWith('..') ? path : short
}

function toPlainLine(line: string): string {
  const { text, details } = toHumanLine(line)
  return details === '' ? text : `${text}  ${details}`
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
