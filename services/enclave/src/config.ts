import { createHash } from 'node:crypto'
import {
  assertEnclaveSettings,
  createEnclaveSettings,
  type EnclaveConfig,
  type EnclaveSettings,
  type EntropySetting,
  type Hex,
  isLoopbackHost,
  parseDrandBeacon,
  ServiceError,
  toEnclaveVersion,
  toRootSecretName,
} from '@countersign/protocol/core'
import {
  ConfigError,
  collectFaults,
  type Env,
  type Fault,
  fileFix,
  findUnmeasured,
  MAX_SESSION_S,
  PRODUCTION_FIX,
  readBoolean,
  readInteger,
  readList,
  readMode,
  testChainIds,
} from '@countersign/service'
import type { CallerPolicy } from './callers.ts'
import { type Issuer, parseIssuers } from './grant/issuers.ts'
import { readLogConfig } from './log/readLogConfig.ts'
import { parseCallerPolicy } from './parseCallerPolicy.ts'
import { type AttestedSource, readAttestedSource } from './rootSecret/attestedSource.ts'
import type { RootSecretSource } from './rootSecret/loadRootSecret.ts'
import type { Listen } from './server.ts'

export type Config = {
  isProduction: boolean
  /** The chains to sign transactions, typed data and authorizations for. Undefined: any. */
  chainIds: readonly number[] | undefined
  listen: Listen
  rootSecret: RootSecretSource | AttestedSource
  quoteSource: { kind: 'mock'; latencyMs: number } | { kind: 'configfs' } | { kind: 'dstack'; socketPath?: string }
  issuers: readonly Issuer[]
  callerPolicy: CallerPolicy
  batchLimit: number
  sessionTtlMs: number
  /** Quotes cover its hash. */
  enclave: EnclaveConfig
  /** Quotes cover its hash, in the settings' version. */
  settings: EnclaveSettings
  /** The logs of this enclave, the preferred one first. Empty without a log. */
  logOrigins: readonly string[]
}

/** The only reader of the environment. `readFile` returns a file's text. */
export function readConfig(env: Env, deps: { readFile(path: string): string; version: string }): Config {
  const { faults, fault } = collectFaults()
  const mode = readMode(env)
  const isProduction = mode === 'production'
  const isStaging = mode === 'staging'
  const isMock = readBoolean(env, 'MOCK_ATTESTATION', fault)

  const listen = readListen(env, fault)
  const rootSecret = readRootSecret(env, { ...deps, isMock }, fault)
  const quoteSource = readQuoteSource(env, fault)
  const { issuers, faults: issuerFaults } = parseIssuers(env.OIDC_ISSUERS ?? '')
  for (const text of issuerFaults) fault('OIDC_ISSUERS', text)
  const { callerPolicy, callerPolicyName } = readCallerPolicy(env, { ...deps, isProduction }, fault)
  const batchLimit = readInteger(env, 'BATCH_LIMIT', { fallback: 256, min: 1, max: 256 }, fault)
  const sessionTtlS = readInteger(env, 'SESSION_TTL_S', { fallback: MAX_SESSION_S, min: 60, max: MAX_SESSION_S }, fault)
  const caSet = readCaSet(env, deps.readFile, fault)
  const log = readLogConfig(env, fault)
  // Compose passes an empty value for an unset one.
  const sessions = env.SESSIONS || 'any'
  if (sessions !== 'any' && sessions !== 'bound') fault('SESSIONS', 'expected any or bound')
  const settings = readSettings(
    env,
    { log: log?.setting ?? null, sessions: sessions === 'bound' ? sessions : 'any' },
    fault,
  )

  if (isMock !== (quoteSource.kind === 'mock'))
    fault('MOCK_ATTESTATION, QUOTE_SOURCE', 'expected mock exactly if MOCK_ATTESTATION=true')
  if (quoteSource.kind !== 'mock') {
    for (const name of [...findUnmeasured(env), ...(env.DSTACK_SOCKET ? ['DSTACK_SOCKET'] : [])]) {
      fault(name, 'rejected on real hardware, because quotes don’t cover it', `Remove ${name} from the environment.`)
    }
  }
  // On this platform RTMR3 differs from guest to guest, so a policy for the root secret has no events to compare.
  if (rootSecret.kind === 'attested' && quoteSource.kind === 'dstack') {
    fault('ROOT_SECRET', 'attested requires QUOTE_SOURCE=configfs; use ROOT_SECRET=dstack with dstack')
  }
  if (isProduction) {
    if (quoteSource.kind === 'mock') fault('QUOTE_SOURCE', 'mock is rejected in production', PRODUCTION_FIX)
    if (rootSecret.kind === 'file') fault('ROOT_SECRET', 'file is rejected in production', PRODUCTION_FIX)
    if (callerPolicy.kind === 'any') fault('CALLER_POLICY_FILE', 'required in production', PRODUCTION_FIX)
    for (const { issuer } of issuers) {
      if (!issuer.startsWith('https://'))
        fault('OIDC_ISSUERS', `expected https in production, got ${issuer}`, PRODUCTION_FIX)
    }
  }
  if (isStaging && quoteSource.kind !== 'mock') {
    fault('QUOTE_SOURCE', 'staging supports only simulated hardware; use production for real hardware')
  }
  if (mode !== 'development' && listen.kind !== 'https') fault('LISTEN', `expected https in ${mode}`, PRODUCTION_FIX)
  const isLoopback = listen.kind === 'unix' || isLoopbackHost(listen.host)
  if (!isLoopback && listen.kind === 'http') fault('HOST', 'expected loopback with plain http')
  if (!isLoopback && quoteSource.kind === 'mock' && !isStaging)
    fault('HOST', 'expected loopback with MOCK_ATTESTATION=true')
  if (faults.length > 0) throw new ConfigError(faults)

  const enclave: EnclaveConfig = {
    issuers,
    caSet,
    // Omits how the secret is obtained at this start: enclaves with the same policy are interchangeable, and so are their grants.
    rootSecret: rootSecret.kind === 'attested' ? toRootSecretName(rootSecret.policy.policyHash) : rootSecret.kind,
    quoteSource: quoteSource.kind,
    callerPolicy: callerPolicyName,
    version: toEnclaveVersion(deps.version, settings),
  }
  return Object.freeze({
    isProduction,
    // A wallet on simulated silicon must not hold real value, so it signs for test networks only.
    chainIds: isStaging ? testChainIds : undefined,
    listen,
    rootSecret,
    quoteSource,
    issuers,
    callerPolicy,
    batchLimit,
    sessionTtlMs: sessionTtlS * 1000,
    enclave,
    settings,
    logOrigins: log?.origins ?? [],
  })
}

function readListen(env: Env, fault: Fault): Listen {
  const kind = env.LISTEN ?? 'http'
  if (kind.startsWith('unix:/')) return { kind: 'unix', path: kind.slice('unix:'.length) }
  if (kind !== 'http' && kind !== 'https') fault('LISTEN', 'expected http, https or unix:/path')
  const port = readInteger(env, 'PORT', { fallback: 8090, min: 0, max: 65_535 }, fault)
  return { kind: kind === 'https' ? 'https' : 'http', host: env.HOST ?? '127.0.0.1', port }
}

function readRootSecret(
  env: Env,
  { readFile, isMock }: { readFile(path: string): string; isMock: boolean },
  fault: Fault,
): RootSecretSource | AttestedSource {
  const value = env.ROOT_SECRET ?? ''
  const attested = readAttestedSource(env, { readFile, isAttested: value === 'attested', isMock }, fault)
  if (attested !== undefined) return attested
  const socket = env.DSTACK_SOCKET ? { socketPath: env.DSTACK_SOCKET } : {}
  if (value === 'dstack') return { kind: 'dstack', ...socket }
  if (!value.startsWith('file:') || value.length === 'file:'.length)
    fault('ROOT_SECRET', 'expected file:PATH, dstack or attested')
  return { kind: 'file', path: value.slice('file:'.length) }
}

function readQuoteSource(env: Env, fault: Fault): Config['quoteSource'] {
  const kind = env.QUOTE_SOURCE
  const socket = env.DSTACK_SOCKET ? { socketPath: env.DSTACK_SOCKET } : {}
  if (kind === 'configfs') return { kind }
  if (kind === 'dstack') return { kind, ...socket }
  if (kind !== 'mock') fault('QUOTE_SOURCE', 'expected mock, configfs or dstack')
  const latencyMs = readInteger(env, 'MOCK_QUOTE_LATENCY_MS', { fallback: 39, min: 0, max: 60_000 }, fault)
  return { kind: 'mock', latencyMs }
}

/** Reads the entropy sources whose samples are accepted, and the code that accounts may be delegated to. */
function readSettings(
  env: Env,
  { log, sessions }: Pick<EnclaveSettings, 'log' | 'sessions'>,
  fault: Fault,
): EnclaveSettings {
  const keys = readList(env.ENTROPY_PUBLIC_KEY).map((key) => ({ kind: 'satellite' as const, key }))
  const beacons = readList(env.ENTROPY_DRAND).map(toBeacon)
  const unsigned = readBoolean(env, 'ENTROPY_ALLOW_UNSIGNED', fault) ? [{ kind: 'unsigned' as const }] : []
  const implementations = readList(env.IMPLEMENTATIONS).map((address) => address.toLowerCase() as Hex)
  // Validates each list together with a valid source, so that the error names the right setting.
  if (!isSettings(createEnclaveSettings([{ kind: 'unsigned' }], implementations)))
    fault('IMPLEMENTATIONS', 'expected addresses (0x and 20 bytes of hex), without duplicates')
  if (!isSettings(createEnclaveSettings([{ kind: 'unsigned' }, ...beacons])))
    fault('ENTROPY_DRAND', 'expected quicknet or CHAINHASH:KEY:GENESIS_S:PERIOD_S, without duplicates')
  const others = [...beacons, ...unsigned]
  const needsKeys = keys.length > 0 || others.length === 0
  if (needsKeys && !isSettings(createEnclaveSettings(keys)))
    fault(
      'ENTROPY_PUBLIC_KEY',
      'expected Ed25519 keys in hex without duplicates, or ENTROPY_DRAND or ENTROPY_ALLOW_UNSIGNED=true',
    )
  return createEnclaveSettings([...keys, ...others], implementations, log, sessions)
}

/** An invalid beacon is rejected with the other faults, by its form. */
function toBeacon(text: string): EntropySetting {
  return { kind: 'drand', ...(parseDrandBeacon(text) ?? { key: '', chainHash: '', genesisS: 0, periodS: 0 }) }
}

function isSettings(settings: EnclaveSettings): boolean {
  try {
    assertEnclaveSettings(settings)
    return true
  } catch (error) {
    if (error instanceof ServiceError) return false
    throw error
  }
}

/** The certificate authorities trusted when fetching the keys of identity providers. */
function readCaSet(env: Env, readFile: (path: string) => string, fault: Fault): string {
  const path = env.NODE_EXTRA_CA_CERTS
  if (path === undefined || path === '') return 'bundled'
  try {
    return `bundled+sha256:${createHash('sha256').update(readFile(path)).digest('hex')}`
  } catch {
    fault('NODE_EXTRA_CA_CERTS', 'cannot be read', fileFix('NODE_EXTRA_CA_CERTS'))
    return 'bundled'
  }
}

function readCallerPolicy(
  env: Env,
  { readFile, isProduction }: { readFile(path: string): string; isProduction: boolean },
  fault: Fault,
): { callerPolicy: CallerPolicy; callerPolicyName: string } {
  const path = env.CALLER_POLICY_FILE
  if (path === undefined || path === '') return { callerPolicy: { kind: 'any' }, callerPolicyName: 'any' }
  let text = ''
  try {
    text = readFile(path)
  } catch {
    // An empty text is not a policy and is reported below.
  }
  const parsed = parseCallerPolicy(text, { isProduction })
  if (!('faults' in parsed)) return { callerPolicy: parsed.policy, callerPolicyName: `sha256:${parsed.policyHash}` }
  for (const text of parsed.faults) fault('CALLER_POLICY_FILE', text)
  const none = { report: { measurements: [] }, configHashes: [], requireRevocations: true }
  return { callerPolicy: { kind: 'attested', ...none }, callerPolicyName: '' }
}
