import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { hashEnclaveConfig, toHex } from '@countersign/protocol'
import {
  findFreePorts,
  findProgram,
  measureSimulatedCoordinator,
  measureSimulatedEnclave,
  type OidcAccount,
  startFakeKubo,
  startOidcProvider,
  startPostgres,
} from '@countersign/testing'
import {
  createWitnessFolders,
  type Environment,
  noRateLimits,
  readLogKeys,
  startService,
  toCoordinatorEnv,
  toEnclaveEnv,
  toPath,
  toWorkerEnv,
  writeLogList,
} from '@countersign/testing/launcher'
import { allStarted, type Scope, type StackAnchors } from '@countersign/testing/stack'
import { parseMinimumTcbTexts } from '@countersign/verify'
import { startContract } from '../../contracts/startContract.ts'
import coordinatorPackage from '../../services/coordinator/package.json' with { type: 'json' }
import { readConfig as readCoordinatorConfig } from '../../services/coordinator/src/config.ts'
import enclavePackage from '../../services/enclave/package.json' with { type: 'json' }
import { readConfig as readEnclaveConfig } from '../../services/enclave/src/config.ts'
import { QUOTE_MS } from '../bench/load.ts'
import { startInterceptor } from '../interceptor.ts'
import { createMember, type Member } from '../member.ts'
import { WrongArgumentError } from '../trial.ts'
import { until } from '../until.ts'
import { createAuthority, trust } from './authority.ts'
import { startRelay } from './relay.ts'
import { startDeployedHaproxy } from './startDeployedHaproxy.ts'

/** Number of processes of each kind. With witnesses, each enclave requires a log that they cosign, with a spare origin. */
export type Topology = Readonly<Record<Member['kind'], number>>

const READY_MS = 60_000

export const toTopology = (hasLog: boolean): Topology => ({
  enclave: 2,
  coordinator: 3,
  worker: 2,
  witness: hasLog ? 3 : 0,
})

export type StartClusterParameters = {
  accounts: readonly OidcAccount[]
  /** URL of the PostgreSQL database. */
  databaseUrl: string
  counts: Topology
  /** Enables Node's inspector in each process, to measure its heap. The process logs the address at startup. */
  isInspected?: boolean
  /** Decides which calls to satellite, IPFS and chain fail, once their failure rate is set. */
  random?: () => number
  /** Called for each line that our processes and HAProxy write. */
  onLine?(name: string, line: string): void
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>

const stopEach = (part: { stop(): Promise<unknown> }) => part.stop()

/** Starts PostgreSQL, and a relay in front of it that can be cut. */
export async function startDatabase({ add }: Scope) {
  const postgres = add(await startPostgres({ isDurable: false, settings: { max_connections: '200' } }), stopEach)
  const url = new URL(await postgres.createDatabase())
  const wire = add(await startRelay({ port: Number(url.port) }), stopEach)
  url.port = String(wire.port)
  return { postgres, wire, databaseUrl: url.href }
}

/**
 * Starts the topology on loopback with an existing database: coordinators behind HAProxy with the deployed configuration, workers, and
 * enclaves with one root secret and attested TLS, each side with the other's policy as in production. Outside of it run identity provider,
 * satellite, IPFS node and chain.
 */
export async function startCluster({ add, createFolder }: Scope, parameters: StartClusterParameters) {
  const { accounts, databaseUrl, counts, isInspected = false, random = Math.random, onLine = () => {} } = parameters
  const hasLog = counts.witness > 0
  const haproxy = findHaproxy()
  const folder = await createFolder()
  const [publicPort = 0, ...ports] = await findFreePorts(1 + counts.coordinator + counts.enclave + counts.witness)
  const coordinatorPorts = ports.splice(0, counts.coordinator)
  const enclavePorts = ports.splice(0, counts.enclave)
  const witnessPorts = ports
  const url = `https://localhost:${publicPort}`

  const oidc = add(await startOidcProvider({ redirectUris: [`${url}/auth/google/callback`], accounts }), stopEach)
  const contract = await startContract()
  add(contract.chain, stopEach)
  const start = (name: string, main: string, env: Environment) => {
    const service = startService({ name, main: toPath(main), env, onLine: (line) => onLine(name, line) })
    return add(service, ({ kill }) => kill('SIGTERM')).started
  }
  const { address, publicKey } = await start('satellite', 'trials/satelliteServer.ts', {})
  const satellite = { url: String(address), publicKey: String(publicKey) }
  const { url: ipfsUrl } = add(await startFakeKubo(), stopEach)
  const outside = {
    entropy: add(await startFlaky(satellite.url, random), stopEach),
    ipfs: add(await startFlaky(ipfsUrl, random), stopEach),
    chain: add(await startFlaky(contract.chain.url, random), stopEach),
  }

  const logsFile = join(folder, 'logs')
  const witnesses = hasLog ? await createWitnessFolders(join(folder, 'witnesses'), counts.witness) : []
  const originsOf = (index: number) => [1, 2].map((place) => `log.localhost/enclave-${index + 1}-${place}`)
  const enclaveUrls = enclavePorts.map((port) => `https://127.0.0.1:${port}`)
  const coordinatorEnv = (index: number): Environment => ({
    ...toCoordinatorEnv({
      port: coordinatorPorts[index] ?? 0,
      oidc,
      // Each coordinator starts with another enclave, so that all enclaves have work.
      enclaveUrls: [
        ...enclaveUrls.slice(index % enclaveUrls.length),
        ...enclaveUrls.slice(0, index % enclaveUrls.length),
      ],
      satellite: { url: outside.entropy.url, publicKey: satellite.publicKey },
      databaseUrl,
      witnesses: hasLog
        ? witnesses.map(({ vkey }, place) => ({ vkey, url: `http://127.0.0.1:${witnessPorts[place]}` }))
        : undefined,
    }),
    ...noRateLimits,
    PUBLIC_URL: url,
    TRUSTED_PROXIES: '127.0.0.1,::1',
    ENCLAVE_POLICY_FILE: join(folder, 'enclave-policy.json'),
    IPFS_GATEWAY_URL: ipfsUrl,
    PIPELINE_DELAY_MS: '0',
    WORKER: 'off',
  })
  const enclaveEnv = (index: number): Environment => ({
    ...toEnclaveEnv({
      port: enclavePorts[index] ?? 0,
      rootSecretFile: join(folder, 'root-secret'),
      oidc,
      entropyKey: satellite.publicKey,
      quoteLatencyMs: QUOTE_MS,
      log: hasLog
        ? {
            origins: originsOf(index),
            serviceOrigins: enclavePorts.flatMap((_, place) => originsOf(place)),
            witnesses: witnesses.map(({ vkey }) => vkey),
          }
        : undefined,
    }),
    LISTEN: 'https',
    CALLER_POLICY_FILE: join(folder, 'caller-policy.json'),
  })
  const workerEnv = (): Environment => ({
    ...toWorkerEnv({
      databaseUrl,
      publisher: { ...contract.env, RPC_URL: outside.chain.url },
      kuboUrl: outside.ipfs.url,
    }),
    DATA_DIR: folder,
  })
  const witnessEnv = (index: number): Environment => ({
    PORT: String(witnessPorts[index]),
    WITNESS_DIR: witnesses[index]?.folder ?? '',
    WITNESS_LOGS_FILE: logsFile,
  })
  const anchors = await writePolicies({
    coordinatorEnv: coordinatorEnv(0),
    enclaveEnv: enclaveEnv(0),
    entropyKey: satellite.publicKey,
  })

  const envs = { enclave: enclaveEnv, witness: witnessEnv, coordinator: coordinatorEnv, worker: workerEnv }
  const kinds = ['enclave', 'witness', 'coordinator', 'worker'] as const
  const inspection: Environment = isInspected ? { NODE_OPTIONS: '--inspect=127.0.0.1:0' } : {}
  const members: Member[] = kinds.flatMap((kind) =>
    Array.from({ length: counts[kind] }, (_, index) =>
      createMember({ name: `${kind} ${index + 1}`, kind, env: { ...envs[kind](index), ...inspection }, onLine }),
    ),
  )
  add(members, (all) =>
    Promise.all(
      all.map((member) => {
        member.wake()
        return member.kill('SIGKILL')
      }),
    ),
  )
  // The first of each kind starts before the others: it creates the root secret or the schema that they share.
  const isFirst = ({ name }: Member) => name.endsWith(' 1')
  for (const member of members) {
    if (!isFirst(member)) continue
    const fields = await member.start()
    // An enclave logs the keys of all logs at startup. Witnesses need them, so they start later.
    if (hasLog && member.kind === 'enclave') await writeLogList(logsFile, readLogKeys(fields))
  }
  await allStarted(members.filter((member) => !isFirst(member)).map((member) => member.start()))
  const authority = await createAuthority(folder)
  trust(authority)
  const deployed = { program: haproxy, folder, authority, port: publicPort, coordinatorPorts }
  const ipfsPort = Number(new URL(ipfsUrl).port)
  const proxy = await startDeployedHaproxy({ ...deployed, ipfsPort, onLine: (line) => onLine('HAProxy', line) })
  add(proxy, stopEach)
  if (hasLog) await Promise.all(coordinatorPorts.map((port) => untilComplete(`http://127.0.0.1:${port}`)))

  return {
    /** The public URL, as browsers use it. */
    url,
    proxy,
    /** Direct URLs that bypass HAProxy. */
    coordinatorUrls: coordinatorPorts.map((port) => `http://127.0.0.1:${port}`),
    members,
    ofKind: (kind: Member['kind']) => members.filter((member) => member.kind === kind),
    /** Proxies in front of satellite, IPFS node and chain, used by our processes only. */
    outside,
    /** The addresses for third parties, without these proxies. */
    ipfsUrl,
    chainUrl: contract.chain.url,
    contract: contract.address,
    anchors,
  }
}

/** Finds HAProxy, to fail before anything is started. */
export function findHaproxy(): string {
  const program = findProgram('haproxy')
  if (program === undefined) throw new WrongArgumentError('haproxy is not installed')
  return program
}

/** Resolves when the coordinator can sign and no log or witness is missing. */
async function untilComplete(url: string) {
  let seen = ''
  const isComplete = async () => {
    const answer = await fetch(`${url}/health/ready`)
    const { missing = [] } = (await answer.json()) as { missing?: readonly string[] }
    seen = `${answer.status} ${missing.join(', ')}`
    return answer.status === 200 && missing.length === 0
  }
  if (!(await until(isComplete, READY_MS))) throw new Error(`coordinator not ready: ${seen}`)
}

/** Each side must list the other, as in production. The enclave's hash covers the coordinator's, so the coordinator's comes first. */
async function writePolicies(parameters: {
  coordinatorEnv: Environment
  enclaveEnv: Environment
  entropyKey: string
}): Promise<StackAnchors> {
  const { coordinatorEnv, enclaveEnv, entropyKey } = parameters
  const measurement = measureSimulatedEnclave()
  const { coordinatorMeasurement, coordinatorTcb } = measureSimulatedCoordinator()
  const enclavePolicy = (configHash: string) =>
    JSON.stringify({ measurements: [measurement], configHashes: [configHash] })
  const { configHash: coordinatorConfigHash } = readCoordinatorConfig(coordinatorEnv, {
    readFile: () => enclavePolicy('00'.repeat(32)),
    version: coordinatorPackage.version,
  })
  const callerPolicy = JSON.stringify({
    measurements: [coordinatorMeasurement],
    configHashes: [coordinatorConfigHash],
    minimumTcb: parseMinimumTcbTexts([coordinatorTcb]),
  })
  const { enclave } = readEnclaveConfig(enclaveEnv, { readFile: () => callerPolicy, version: enclavePackage.version })
  const configHash = toHex(hashEnclaveConfig(enclave))
  await writeFile(coordinatorEnv.ENCLAVE_POLICY_FILE ?? '', enclavePolicy(configHash))
  await writeFile(enclaveEnv.CALLER_POLICY_FILE ?? '', callerPolicy)
  return {
    measurement,
    configHash,
    coordinatorMeasurement,
    coordinatorConfigHash,
    coordinatorTcb,
    entropyKey,
  }
}

/** With each of these, the caller can't know whether the service received the request. */
const FAULTS = ['reset', 'error', 'answer-lost', 'slow'] as const
const SLOW_MS = 2_000

/** A proxy that fails some requests, before or after the service has processed them, as `random` decides. */
async function startFlaky(target: string, random: () => number) {
  const counts = { requests: 0, failed: 0 }
  let rate = 0
  const { url, stop } = await startInterceptor(target, async (_, forward) => {
    counts.requests += 1
    if (random() >= rate) return forward()
    counts.failed += 1
    const fault = FAULTS[Math.floor(random() * FAULTS.length)]
    if (fault === 'reset') return undefined
    if (fault === 'error') return { status: 500, type: 'text/plain', body: Buffer.from('injected failure') }
    if (fault === 'slow') await setTimeout(SLOW_MS, undefined, { ref: false })
    const answer = await forward()
    return fault === 'answer-lost' ? undefined : answer
  })
  return {
    url,
    stop,
    /** Numbers of requests and of failed ones. */
    counts: counts as Readonly<typeof counts>,
    /** Sets the share of requests that fail from now on. */
    setRate(next: number) {
      rate = next
    },
  }
}
