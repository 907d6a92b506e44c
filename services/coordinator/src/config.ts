import { createHash } from 'node:crypto'
import { codeEvents, findOpenRegisters, quotePolicyMembers } from '@countersign/attestation'
import {
  type DrandBeacon,
  type EntropySetting,
  isHex,
  isLoopbackHost,
  isLoopbackUrl,
  isPlainObject,
  isSafeUrl,
  parseDrandBeacon,
  parseStrictJson,
  quicknet,
  toCanonicalJson,
} from '@countersign/protocol'
import {
  ConfigError,
  collectFaults,
  type Env,
  type Fault,
  fileFix,
  findUnmeasured,
  MAX_SESSION_S,
  type Mode,
  PRODUCTION_FIX,
  readBoolean,
  readInteger,
  readList,
  readMode,
  readSecret,
  readUrl,
  refuseMisspelt,
  refuseRealChains,
  type SettingFault,
  settingNames,
  testChainIds,
} from '@countersign/service'
import type { ProviderConfig } from './accounts/providers.ts'
import { readProviders } from './accounts/readProviders.ts'
import type { AppConfig } from './app.ts'
import { parseRateLimit, type RateLimit } from './http/rateLimit.ts'
import { readWitnesses, type WitnessSite } from './log/witnessClient.ts'
import { type PipelineConfig, readDatabaseUrl, readMetricsPort, readPipeline } from './publish/config.ts'
import type { EnclavePolicy } from './sign/enclave/keyEnclave.ts'
import type { EntropySourceConfig } from './sign/entropy/createEntropySource.ts'

type BeaconConfig = { kind: 'drand'; url: string; beacon: DrandBeacon }

export type Config = {
  mode: Mode
  isMock: boolean
  listen: { host: string; port: number }
  metricsPort: number | undefined
  app: AppConfig
  databaseUrl: string
  dataDir: string
  providers: readonly ProviderConfig[]
  enclaveUrls: readonly string[]
  enclavePolicy: EnclavePolicy
  reportSource: 'mock' | 'configfs'
  snpCertsFile: string | undefined
  collateralUrl: string
  entropy: (EntropySourceConfig | BeaconConfig) & { maxAgeMs: number; allowUnsigned: boolean }
  /** For transactions. All other kinds have receipts of version 2. */
  receiptVersion: 1 | 2
  /** Witnesses of the enclaves' logs; empty if the enclaves have no log. */
  witnesses: readonly WitnessSite[]
  batchLimit: number
  pipelineDelayMs: number
  /** Undefined if this process does not publish. */
  pipeline: PipelineConfig | undefined
  /** SHA-256 of the settings that affect signing, for the coordinator's own report. */
  configHash: string
}

const MAX_ENCLAVE_POLICY_BYTES = 262_144
const POLICY_FIX = 'Write the policy as docs/run/deploy.md#policies shows it.'

type ReadConfigDeps = { readFile(path: string): string; version: string }

/** The only reader of the environment. */
export function readConfig(env: Env, deps: ReadConfigDeps): Config {
  const { config, faults } = inspectConfig(env, deps)
  if (faults.length > 0) throw new ConfigError(faults)
  return config
}

/** Like `readConfig`, but also returns the settings when there are faults. Settings named by a fault have no meaning. */
export function inspectConfig(env: Env, deps: ReadConfigDeps): { config: Config; faults: readonly SettingFault[] } {
  const { faults, fault } = collectFaults()
  refuseMisspelt(env, settingNames, fault)
  const mode = readMode(env)
  const isProduction = mode === 'production'
  const isStaging = mode === 'staging'
  const isMock = readBoolean(env, 'MOCK_ATTESTATION', fault)
  const port = readInteger(env, 'PORT', { fallback: 8080, min: 0, max: 65_535 }, fault)
  const host = env.HOST || '127.0.0.1'
  const publicUrl = readUrl(env, 'PUBLIC_URL', `http://localhost:${port}`, fault)
  const allowedOrigins = readOrigins(env, fault)
  const reportSource = env.REPORT_SOURCE || (isMock ? 'mock' : 'configfs')
  if (reportSource !== 'mock' && reportSource !== 'configfs') fault('REPORT_SOURCE', 'expected mock or configfs')
  if ((reportSource === 'mock') !== isMock)
    fault('MOCK_ATTESTATION, REPORT_SOURCE', 'expected mock exactly if MOCK_ATTESTATION=true')
  const enclaveUrls = readEnclaveUrls(env, fault)
  const enclavePolicy = readEnclavePolicy(env, { isMock, isProduction, readFile: deps.readFile }, fault)
  const entropy = readEntropy(env, deps.readFile, fault)
  const receipts = readInteger(env, 'RECEIPTS', { fallback: 1, min: 1, max: 2 }, fault)
  const providers = readProviders(env, deps.readFile, fault)
  const databaseUrl = readDatabaseUrl(env, deps.readFile, fault)
  const allowedChainIds = readChainIds(env, { isStaging }, fault)
  const witnesses = readWitnesses(env, fault)

  if (!isMock) {
    const certificates = env.NODE_EXTRA_CA_CERTS === undefined ? [] : ['NODE_EXTRA_CA_CERTS']
    for (const name of [...findUnmeasured(env), ...certificates]) {
      fault(name, 'rejected on real hardware, because reports don’t cover it', `Remove ${name} from the environment.`)
    }
  }
  if (isStaging) {
    if (!isMock) fault('MOCK_ATTESTATION', 'staging supports only simulated hardware; use production for real hardware')
    if (!isSafeUrl(publicUrl)) fault('PUBLIC_URL', 'expected https, or http on loopback')
  } else if (isMock) {
    if (isProduction) fault('MOCK_ATTESTATION', 'rejected in production', PRODUCTION_FIX)
    if (!isLoopbackHost(host)) fault('HOST', 'expected loopback with MOCK_ATTESTATION=true')
    if (!isLoopbackUrl(publicUrl)) fault('PUBLIC_URL', 'expected loopback with MOCK_ATTESTATION=true')
  }
  if (witnesses.length > 0) {
    if (receipts !== 2) fault('RECEIPTS', 'expected 2 with LOG_WITNESSES')
  }
  if (isProduction && !publicUrl.startsWith('https://'))
    fault('PUBLIC_URL', 'expected https in production', PRODUCTION_FIX)
  // Staging follows production's rules, except for simulated silicon.
  if (mode !== 'development') {
    for (const url of enclaveUrls)
      if (!url.startsWith('https://')) fault('ENCLAVE_URL', `expected https in ${mode}`, PRODUCTION_FIX)
    if (entropy.allowUnsigned && entropy.kind !== 'orbitport') {
      fault('ENTROPY_ALLOW_UNSIGNED', `${mode} allows it only with ENTROPY_SOURCE=orbitport`, PRODUCTION_FIX)
    }
  }
  const cookieSameSite = env.COOKIE_SAMESITE || 'none'
  if (cookieSameSite !== 'none' && cookieSameSite !== 'lax' && cookieSameSite !== 'strict') {
    fault('COOKIE_SAMESITE', 'expected none, lax or strict')
  }
  if (cookieSameSite === 'none' && !publicUrl.startsWith('https://')) {
    fault('COOKIE_SAMESITE', 'none requires an https PUBLIC_URL: browsers reject such cookies otherwise')
  }
  const seconds = (name: string, fallback: number) =>
    1000 * readInteger(env, name, { fallback, min: 1, max: MAX_SESSION_S }, fault)
  const limit = (name: string, fallback: string) => readRateLimit(env, name, fallback, fault)
  const ipfsGatewayUrl = env.IPFS_GATEWAY_URL ? readUrl(env, 'IPFS_GATEWAY_URL', '', fault) : undefined
  const context = { readFile: deps.readFile, mode }
  const pipeline = isWorker(env, fault) ? readPipeline(env, context, fault) : undefined
  if (pipeline?.logWitness !== undefined) {
    if (receipts !== 2) fault('RECEIPTS', 'expected 2 with PUBLISH=checkpoints')
    if (witnesses.length === 0)
      fault('LOG_WITNESSES', 'required with PUBLISH=checkpoints: without a log there are none')
  }
  const config: Omit<Config, 'configHash'> = {
    mode,
    isMock,
    listen: { host, port },
    metricsPort: readMetricsPort(env, fault),
    app: {
      publicUrl,
      allowedOrigins,
      cookieSameSite: cookieSameSite as AppConfig['cookieSameSite'],
      sessionTtlMs: seconds('SESSION_TTL_S', MAX_SESSION_S),
      sessionIdleMs: seconds('SESSION_IDLE_S', 7_200),
      trustedProxies: readList(env.TRUSTED_PROXIES),
      rateLimits: {
        sign: limit('RATE_LIMIT_SIGN', '60/60'),
        provision: limit('RATE_LIMIT_PROVISION', '10/60'),
        auth: limit('RATE_LIMIT_AUTH', '30/60'),
        proof: limit('RATE_LIMIT_PROOF', '600/60'),
      },
      allowedChainIds,
      entropySources: toEntropySettings(entropy),
      isMock,
      isChainRequired: isStaging,
      signQuotaPerDay: readInteger(env, 'SIGN_QUOTA_PER_DAY', { fallback: undefined, min: 1, max: 1_000_000 }, fault),
      ...(ipfsGatewayUrl === undefined ? {} : { ipfsGatewayUrl }),
      version: deps.version,
    },
    databaseUrl,
    dataDir: env.DATA_DIR || '.countersign',
    providers,
    enclaveUrls,
    enclavePolicy,
    reportSource: reportSource === 'mock' ? 'mock' : 'configfs',
    snpCertsFile: env.SNP_CERTS_FILE || undefined,
    collateralUrl: readUrl(env, 'COLLATERAL_URL', 'https://api.trustedservices.intel.com', fault),
    entropy,
    receiptVersion: receipts === 2 ? 2 : 1,
    witnesses,
    batchLimit: readInteger(env, 'BATCH_LIMIT', { fallback: 256, min: 1, max: 256 }, fault),
    pipelineDelayMs: readInteger(env, 'PIPELINE_DELAY_MS', { fallback: 1000, min: 0, max: 3_600_000 }, fault),
    pipeline,
  }
  // A configuration with faults may not be hashable.
  const configHash = faults.length > 0 ? tryToHash(config, deps.version) : hashConfig(config, deps.version)
  return { config: Object.freeze({ ...config, configHash }), faults }
}

function tryToHash(config: Omit<Config, 'configHash'>, version: string): string {
  try {
    return hashConfig(config, version)
  } catch {
    return ''
  }
}

/**
 * Covers which enclaves, entropy sources and identity providers the coordinator trusts, so that third parties can check them. It omits the
 * enclaves' configuration hashes, because those cover this hash; commitments to root secrets, which are created later; and witnesses, whose keys
 * are in the enclave's settings.
 */
function hashConfig(config: Omit<Config, 'configHash'>, version: string): string {
  const { providers, entropy } = config
  const { configHashes: _, commitments: __, ...enclavePolicy } = config.enclavePolicy
  const measured = {
    version,
    providers: providers.map(({ id, issuer, clientId }) => ({ id, issuer, clientId })),
    enclavePolicy: JSON.parse(JSON.stringify(enclavePolicy)),
    entropy: {
      kind: entropy.kind,
      keys: entropy.kind === 'satellite' ? entropy.publicKeys : [],
      // Genesis and period determine the time of a round.
      ...(entropy.kind === 'drand' && { beacon: entropy.beacon }),
      maxAgeMs: entropy.maxAgeMs,
      allowUnsigned: entropy.allowUnsigned,
    },
  }
  return createHash('sha256').update(toCanonicalJson(measured)).digest('hex')
}

function readOrigins(env: Env, fault: Fault): string[] {
  const origins = readList(env.ALLOWED_ORIGINS)
  if (origins.length === 0) fault('ALLOWED_ORIGINS', 'expected at least one origin')
  for (const origin of origins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      fault('ALLOWED_ORIGINS', 'expected exact origins, such as https://app.example.com')
  }
  return origins
}

function readEnclaveUrls(env: Env, fault: Fault): string[] {
  const urls = readList(env.ENCLAVE_URL || 'http://127.0.0.1:8090')
  if (urls.length === 0) fault('ENCLAVE_URL', 'missing')
  for (const url of urls) {
    const isValid = url.startsWith('unix:/') || isSafeUrl(url)
    if (!isValid) fault('ENCLAVE_URL', 'expected https, unix:/path, or http on loopback')
  }
  return urls
}

/** Which enclaves to trust. Required unless mock; empty lists are faults. In production it must cover all code. */
function readEnclavePolicy(
  env: Env,
  { isMock, isProduction, readFile }: { isMock: boolean; isProduction: boolean; readFile(path: string): string },
  fault: Fault,
): EnclavePolicy {
  const path = env.ENCLAVE_POLICY_FILE
  if (path === undefined || path === '') {
    if (!isMock) fault('ENCLAVE_POLICY_FILE', 'required unless MOCK_ATTESTATION=true', POLICY_FIX)
    return {}
  }
  let text: string
  try {
    text = readFile(path)
  } catch {
    fault('ENCLAVE_POLICY_FILE', 'cannot be read', fileFix('ENCLAVE_POLICY_FILE'))
    return {}
  }
  let value: unknown
  try {
    value = parseStrictJson(new TextEncoder().encode(text), { maxLength: MAX_ENCLAVE_POLICY_BYTES })
  } catch {
    fault('ENCLAVE_POLICY_FILE', 'expected JSON without duplicate members', POLICY_FIX)
    return {}
  }
  if (!isPlainObject(value)) {
    fault('ENCLAVE_POLICY_FILE', 'expected an object', POLICY_FIX)
    return {}
  }
  // A misspelled or mistyped member would silently accept more than intended.
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(POLICY_MEMBERS, name)) fault('ENCLAVE_POLICY_FILE', `unknown member ${name}`, POLICY_FIX)
  }
  for (const [name, isValid] of Object.entries(POLICY_MEMBERS)) {
    const isRequired = name === 'measurements' || name === 'configHashes'
    if ((isRequired || value[name] !== undefined) && !isValid(value[name])) {
      fault('ENCLAVE_POLICY_FILE', `invalid ${name}: malformed or empty`, POLICY_FIX)
    }
  }
  if (isProduction) refuseOpenCode(value, fault)
  return value as EnclavePolicy
}

/** Without all registers, a measurement accepts other code: MRTD covers only the firmware, which anyone can run. */
function refuseOpenCode(value: Record<string, unknown>, fault: Fault) {
  const { measurements = [], ...rest } = value as EnclavePolicy
  if (!quotePolicyMembers.measurements(measurements)) return
  const events = quotePolicyMembers.events(rest.events) ? rest.events : undefined
  for (const [index, measurement] of measurements.entries()) {
    const open = findOpenRegisters(measurement, events)
    if (open.length === 0) continue
    const alternative = open.includes('rtmr3') ? ` (the events ${codeEvents.join(', ')} can replace rtmr3)` : ''
    fault(
      'ENCLAVE_POLICY_FILE',
      `measurements[${index}] lacks ${open.join(', ')}, required in production${alternative}`,
      PRODUCTION_FIX,
    )
  }
}

const isHashList = (value: unknown) =>
  Array.isArray(value) && value.length > 0 && value.every((hash) => isHex(hash, 32))

const POLICY_MEMBERS: Record<string, (value: unknown) => boolean> = {
  ...quotePolicyMembers,
  configHashes: isHashList,
  commitments: isHashList,
}

function readEntropy(env: Env, readFile: (path: string) => string, fault: Fault): Config['entropy'] {
  const kind = env.ENTROPY_SOURCE || 'satellite'
  const maxAgeMs = 1000 * readInteger(env, 'ENTROPY_MAX_AGE_S', { fallback: 60, min: 1, max: 60 }, fault)
  const allowUnsigned = readBoolean(env, 'ENTROPY_ALLOW_UNSIGNED', fault)
  const shared = { maxAgeMs, allowUnsigned }
  const url = env.ENTROPY_URL ?? ''
  if (!URL.canParse(url)) fault('ENTROPY_URL', 'expected a URL')
  if (kind === 'drand') {
    const beacon = parseDrandBeacon(env.ENTROPY_DRAND || 'quicknet')
    if (beacon === undefined) fault('ENTROPY_DRAND', 'expected quicknet or CHAINHASH:KEY:GENESIS_S:PERIOD_S')
    // Only version 2 can store a beacon's signature.
    if (env.RECEIPTS !== '2') fault('RECEIPTS', 'expected 2 with ENTROPY_SOURCE=drand')
    return { kind, url, beacon: beacon ?? quicknet, ...shared }
  }
  if (kind === 'orbitport') {
    const clientId = env.ENTROPY_CLIENT_ID ?? ''
    const clientSecret = readSecret(env, 'ENTROPY_CLIENT_SECRET', readFile, fault)
    const authUrl = env.ENTROPY_AUTH_URL ?? ''
    if (clientId === '' || clientSecret === '') fault('ENTROPY_CLIENT_ID, ENTROPY_CLIENT_SECRET', 'missing')
    if (!URL.canParse(authUrl)) fault('ENTROPY_AUTH_URL', 'expected a URL')
    if (!allowUnsigned) fault('ENTROPY_ALLOW_UNSIGNED', 'expected true, because orbitport does not sign its samples')
    return { kind, url, clientId, clientSecret: clientSecret ?? '', authUrl, ...shared }
  }
  if (kind !== 'satellite') fault('ENTROPY_SOURCE', 'expected satellite, orbitport or drand')
  const publicKeys = readList(env.ENTROPY_PUBLIC_KEY)
  const isValid = publicKeys.length > 0 && publicKeys.every((key) => /^[0-9a-f]{64}$/.test(key))
  if (!isValid) fault('ENTROPY_PUBLIC_KEY', 'expected comma-separated keys of 32 bytes in hex')
  return { kind: 'satellite', url, publicKeys, ...shared }
}

function toEntropySettings(entropy: Config['entropy']): readonly EntropySetting[] {
  if (entropy.kind === 'drand') return [{ kind: 'drand', ...entropy.beacon }]
  return entropy.kind === 'satellite'
    ? entropy.publicKeys.map((key) => ({ kind: 'satellite', key }))
    : [{ kind: 'unsigned' }]
}

/** Staging allows only test networks: on a real chain, its signatures would be valid too. */
function readChainIds(env: Env, { isStaging }: { isStaging: boolean }, fault: Fault): readonly number[] | undefined {
  if (env.ALLOWED_CHAIN_IDS === undefined || env.ALLOWED_CHAIN_IDS === '') return isStaging ? testChainIds : undefined
  const texts = readList(env.ALLOWED_CHAIN_IDS)
  const isValid =
    texts.length > 0 && texts.every((text) => /^[1-9]\d*$/.test(text) && Number.isSafeInteger(Number(text)))
  if (!isValid) fault('ALLOWED_CHAIN_IDS', 'expected comma-separated chain ids')
  else if (isStaging) refuseRealChains('ALLOWED_CHAIN_IDS', texts.map(Number), fault)
  return texts.map(Number)
}

function isWorker(env: Env, fault: Fault): boolean {
  const { WORKER: worker = '', RPC_URL: rpcUrl = '' } = env
  if (worker === 'off') return false
  if (worker !== '' && worker !== 'on') fault('WORKER', 'expected on or off')
  // Without RPC_URL the proofs would wait forever, although the operator wants to publish.
  const wanted =
    worker === 'on'
      ? 'WORKER'
      : (['PUBLISHER_PRIVATE_KEY', 'PUBLISHER_PRIVATE_KEY_FILE'] as const).find((name) => env[name])
  if (rpcUrl === '' && wanted !== undefined) fault('RPC_URL', `required with ${wanted}`)
  return true
}

function readRateLimit(env: Env, name: string, fallback: string, fault: Fault): RateLimit {
  const limit = parseRateLimit(env[name] || fallback)
  if (limit === undefined) fault(name, 'expected count/seconds or off')
  return limit ?? 'off'
}
