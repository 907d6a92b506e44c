import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseQuote, parseReport } from '@countersign/attestation'
import { createSimulator } from '@countersign/attestation/simulator'
import { hashEnclaveConfig, toHex } from '@countersign/protocol'
import { findFreePorts, type OidcAccount, startOidcProvider, startPostgres, startSatellite } from '@countersign/testing'
import { startService } from '../../dev/service.ts'
import coordinatorPackage from '../../services/coordinator/package.json' with { type: 'json' }
import { readConfig as readCoordinatorConfig } from '../../services/coordinator/src/config.ts'
import { APP } from '../../services/coordinator/test/backend.ts'
import { startContract } from '../../services/coordinator/test/contract.ts'
import enclavePackage from '../../services/enclave/package.json' with { type: 'json' }
import { readConfig as readEnclaveConfig } from '../../services/enclave/src/config.ts'
import { startFlakyProxy } from './flakyProxy.ts'
import { createMember, type Member } from './member.ts'
import { startRelay } from './relay.ts'

const toPath = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
const MAINS = {
  coordinator: toPath('../../services/coordinator/src/main.ts'),
  worker: toPath('../../services/coordinator/src/worker.ts'),
  enclave: toPath('../../services/enclave/src/main.ts'),
}
/** Compiled code of all processes: one that was killed is back in half the time. */
const COMPILE_CACHE = toPath('../../node_modules/.cache/countersign-cluster')

/** How many of each. */
export const topology = { enclave: 2, coordinator: 3, worker: 2 } as const

export type StartClusterParameters = {
  accounts: readonly OidcAccount[]
  quoteLatencyMs: number
  /** Decides which calls of satellite, IPFS and chain fail, once their rate is set. */
  random?: () => number
  /** Each line that a process of ours writes. */
  onLine?(name: string, line: string): void
}

/** What a stranger trusts who verifies this cluster's proofs. */
type ClusterAnchors = {
  measurement: string
  configHash: string
  coordinatorMeasurement: string
  coordinatorConfigHash: string
  entropyKey: string
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

/**
 * The topology on loopback: PostgreSQL, coordinators behind a round-robin balancer, workers, enclaves with one root secret and
 * attested TLS, each with the other's policy as in production; and outside of it identity provider, satellite, IPFS node and chain.
 */
export async function startCluster(parameters: StartClusterParameters) {
  const stops: (() => Promise<unknown>)[] = []
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end()
  }
  try {
    return { ...(await startParts(parameters, stops)), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startParts(parameters: StartClusterParameters, stops: (() => Promise<unknown>)[]) {
  const { accounts, quoteLatencyMs, random = Math.random, onLine = () => {} } = parameters
  const folder = await mkdtemp(join(tmpdir(), 'countersign-cluster-'))
  stops.push(() => rm(folder, { recursive: true, force: true }))
  const ports = await findFreePorts(2 + topology.coordinator + topology.enclave)
  const [publicPort = 0, ipfsPort = 0] = ports
  const coordinatorPorts = ports.slice(2, 2 + topology.coordinator)
  const enclavePorts = ports.slice(2 + topology.coordinator)
  const url = `http://localhost:${publicPort}`

  const oidc = await startOidcProvider({ redirectUris: [`${url}/auth/google/callback`], accounts })
  stops.push(() => oidc.stop())
  const satellite = await startSatellite()
  stops.push(() => satellite.stop())
  const postgres = await startPostgres({ isDurable: false, settings: { max_connections: '200' } })
  stops.push(() => postgres.stop())
  const databaseUrl = new URL(await postgres.createDatabase())
  const wire = await startRelay({ port: Number(databaseUrl.port) })
  stops.push(() => wire.stop())
  databaseUrl.port = String(wire.port)
  const contract = await startContract()
  stops.push(() => contract.chain.stop())
  const start = (name: string, main: string, env: Record<string, string>) => {
    const service = startService({ name, main: toPath(main), env, onLine: (line) => onLine(name, line) })
    stops.push(async () => {
      service.signal('SIGTERM')
      await service.ended
    })
    return service.ready
  }
  await start('IPFS node', './ipfsNode.ts', { PORT: String(ipfsPort), DATA_DIR: folder })
  const ipfsUrl = `http://127.0.0.1:${ipfsPort}`
  const outside = {
    entropy: await startFlakyProxy({ target: satellite.url, random }),
    ipfs: await startFlakyProxy({ target: ipfsUrl, random }),
    chain: await startFlakyProxy({ target: contract.chain.url, random }),
  }
  stops.push(() => Promise.all(Object.values(outside).map((proxy) => proxy.stop())))

  const common = { MOCK_ATTESTATION: 'true', NODE_COMPILE_CACHE: COMPILE_CACHE }
  const enclaveUrls = enclavePorts.map((port) => `https://127.0.0.1:${port}`)
  const coordinatorEnv = (index: number) => ({
    ...common,
    PORT: String(coordinatorPorts[index]),
    PUBLIC_URL: url,
    TRUSTED_PROXIES: '127.0.0.1,::1',
    COOKIE_SAMESITE: 'lax',
    ALLOWED_ORIGINS: APP,
    OIDC_GOOGLE_ISSUER: oidc.issuer,
    OIDC_GOOGLE_CLIENT_ID: oidc.clientId,
    OIDC_GOOGLE_CLIENT_SECRET: oidc.clientSecret,
    // Each begins with another one, so that all enclaves have work.
    ENCLAVE_URL: enclaveUrls.map((_, step) => enclaveUrls[(index + step) % enclaveUrls.length]).join(),
    ENCLAVE_POLICY_FILE: join(folder, 'enclave-policy.json'),
    ENTROPY_URL: outside.entropy.url,
    ENTROPY_PUBLIC_KEY: satellite.publicKey,
    DATABASE_URL: databaseUrl.href,
    IPFS_GATEWAY_URL: ipfsUrl,
    PIPELINE_DELAY_MS: '0',
    WORKER: 'off',
    RATE_LIMIT_SIGN: 'off',
    RATE_LIMIT_PROVISION: 'off',
    RATE_LIMIT_AUTH: 'off',
    RATE_LIMIT_PROOF: 'off',
  })
  const enclaveEnv = (index: number) => ({
    ...common,
    PORT: String(enclavePorts[index]),
    LISTEN: 'https',
    QUOTE_SOURCE: 'mock',
    MOCK_QUOTE_LATENCY_MS: String(quoteLatencyMs),
    ROOT_SECRET: `file:${folder}/root-secret`,
    OIDC_ISSUERS: `${oidc.issuer}=${oidc.clientId}`,
    CALLER_POLICY_FILE: join(folder, 'caller-policy.json'),
  })
  const anchors = await writePolicies({
    coordinatorEnv: coordinatorEnv(0),
    enclaveEnv: enclaveEnv(0),
    entropyKey: satellite.publicKey,
  })

  const members: Member[] = []
  const add = (kind: Member['kind'], count: number, env: (index: number) => Record<string, string>) => {
    for (let index = 0; index < count; index++) {
      members.push(createMember({ name: `${kind} ${index + 1}`, kind, main: MAINS[kind], env: env(index), onLine }))
    }
  }
  add('enclave', topology.enclave, enclaveEnv)
  add('coordinator', topology.coordinator, coordinatorEnv)
  add('worker', topology.worker, () => ({
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    DATABASE_URL: databaseUrl.href,
    ...contract.env,
    RPC_URL: outside.chain.url,
    IPFS_PINNER: 'kubo',
    IPFS_API_URL: outside.ipfs.url,
    DATA_DIR: folder,
  }))
  stops.push(() =>
    Promise.all(
      members.map((member) => {
        member.wake()
        return member.kill('SIGKILL')
      }),
    ),
  )
  // One after the other, where two would make the same root secret or schema.
  for (const member of members) await member.start()
  const startBalancer = (port: number, upstreams: readonly number[]) =>
    start('balancer', './balancer.ts', { PORT: String(port), UPSTREAMS: upstreams.join() })
  await startBalancer(publicPort, coordinatorPorts)

  return {
    /** Where browsers reach it. */
    url,
    /** Another balancer, before the first coordinator alone: its URL. */
    async startLoneBalancer() {
      const [port = 0] = await findFreePorts(1)
      await startBalancer(port, coordinatorPorts.slice(0, 1))
      return `http://127.0.0.1:${port}`
    },
    members,
    ofKind: (kind: Member['kind']) => members.filter((member) => member.kind === kind),
    postgres,
    /** Between PostgreSQL and everyone. */
    wire,
    /** In front of satellite, IPFS node and chain, for our own processes. */
    outside,
    /** As strangers reach them. */
    ipfsUrl,
    chainUrl: contract.chain.url,
    contract: contract.address,
    anchors,
  }
}

/** Each side lists the other, as production demands. The enclave's hash covers the coordinator's, not the other way round. */
async function writePolicies(parameters: {
  coordinatorEnv: Record<string, string>
  enclaveEnv: Record<string, string>
  entropyKey: string
}): Promise<ClusterAnchors> {
  const { coordinatorEnv, enclaveEnv, entropyKey } = parameters
  const simulator = createSimulator({ at: new Date() })
  const { body } = parseQuote(Uint8Array.from(simulator.quote({ reportData: new Uint8Array(64) })))
  const [rtmr0, rtmr1, rtmr2, rtmr3] = body.rtmrs.map(toHex)
  const measurements = [{ mrTd: toHex(body.mrTd), rtmr0, rtmr1, rtmr2, rtmr3 }]
  const report = parseReport(Uint8Array.from(simulator.report({ reportData: new Uint8Array(64) })))
  const coordinatorMeasurement = toHex(report.measurement)
  const enclavePolicy = (configHash: string) => JSON.stringify({ measurements, configHashes: [configHash] })
  const { configHash: coordinatorConfigHash } = readCoordinatorConfig(coordinatorEnv, {
    readFile: () => enclavePolicy('00'.repeat(32)),
    version: coordinatorPackage.version,
  })
  const callerPolicy = JSON.stringify({
    measurements: [coordinatorMeasurement],
    configHashes: [coordinatorConfigHash],
  })
  const { enclave } = readEnclaveConfig(enclaveEnv, { readFile: () => callerPolicy, version: enclavePackage.version })
  const configHash = toHex(hashEnclaveConfig(enclave))
  await writeFile(coordinatorEnv.ENCLAVE_POLICY_FILE ?? '', enclavePolicy(configHash))
  await writeFile(enclaveEnv.CALLER_POLICY_FILE ?? '', callerPolicy)
  return {
    measurement: [body.mrTd, ...body.rtmrs].map(toHex).join(':'),
    configHash,
    coordinatorMeasurement,
    coordinatorConfigHash,
    entropyKey,
  }
}
