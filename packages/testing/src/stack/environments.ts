/** Environments of the service's processes. Callers spread their changes over them. */
export type Environment = Record<string, string>

type Oidc = { issuer: string; clientId: string; clientSecret: string }
/** Without a secret, pages sign in at the provider themselves. */
type CoordinatorOidc = Omit<Oidc, 'clientSecret'> & Partial<Oidc>

/** The client of a page that signs in at the provider itself. */
export const PAGE_CLIENT_ID = 'countersign-page'

/** The default origin of the app. */
export const APP_ORIGIN = 'http://localhost:5173'

/** The key of `startSatellite` without a seed, as a constant, since computing it would load the simulator. */
const SATELLITE_KEY = '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11'

/** The default origins of a local log and its spare. */
export const LOG_ORIGINS: readonly string[] = ['log.localhost/1', 'log.localhost/2']

/** A log that the enclave requires. The quorum is a majority of the witnesses. */
export type EnclaveLogSettings = {
  /** Origins of this enclave, the preferred one first. */
  origins: readonly string[]
  /** Origins of all enclaves. Default: those of this enclave. */
  serviceOrigins?: readonly string[]
  /** Verifier keys. */
  witnesses: readonly string[]
}

export function toEnclaveEnv(parameters: {
  /** Default: a free one. */
  port?: number
  rootSecretFile: string
  oidc: Pick<Oidc, 'issuer' | 'clientId'>
  /** Key of the entropy source. Default: the simulated satellite's. */
  entropyKey?: string
  quoteLatencyMs: number
  log?: EnclaveLogSettings | undefined
}): Environment {
  const { port = 0, rootSecretFile, oidc, entropyKey = SATELLITE_KEY, quoteLatencyMs, log } = parameters
  return {
    PORT: String(port),
    MOCK_ATTESTATION: 'true',
    QUOTE_SOURCE: 'mock',
    MOCK_QUOTE_LATENCY_MS: String(quoteLatencyMs),
    ROOT_SECRET: `file:${rootSecretFile}`,
    OIDC_ISSUERS: `${oidc.issuer}=${oidc.clientId}`,
    ENTROPY_PUBLIC_KEY: entropyKey,
    ...(log === undefined ? {} : toEnclaveLogEnv(log)),
  }
}

function toEnclaveLogEnv({ origins, serviceOrigins, witnesses }: EnclaveLogSettings): Environment {
  return {
    LOG_ORIGINS: origins.join(),
    ...(serviceOrigins === undefined ? {} : { LOG_SERVICE_ORIGINS: serviceOrigins.join() }),
    LOG_WITNESSES: witnesses.join(),
  }
}

export function toCoordinatorEnv(parameters: {
  port: number
  /** The sign-in returns to the first one. */
  allowedOrigins?: readonly string[]
  oidc: CoordinatorOidc
  enclaveUrls: readonly string[]
  satellite: { url: string; publicKey: string }
  /** Folder of the embedded IPFS node. */
  dataDir?: string
  databaseUrl: string
  /** The witnesses of the enclaves' logs, with their addresses. */
  witnesses?: readonly { vkey: string; url: string }[] | undefined
}): Environment {
  const { port, allowedOrigins = [APP_ORIGIN], oidc, enclaveUrls, satellite, dataDir, databaseUrl } = parameters
  const { witnesses } = parameters
  return {
    PORT: String(port),
    MOCK_ATTESTATION: 'true',
    // App and service are both on localhost and so on the same site, where lax is enough. Plain http allows nothing else.
    COOKIE_SAMESITE: 'lax',
    ALLOWED_ORIGINS: allowedOrigins.join(),
    ...toOidcEnv(oidc),
    ENCLAVE_URL: enclaveUrls.join(),
    ENTROPY_URL: satellite.url,
    ENTROPY_PUBLIC_KEY: satellite.publicKey,
    ...(dataDir === undefined ? {} : { DATA_DIR: dataDir }),
    DATABASE_URL: databaseUrl,
    // Only version 2 receipts contain a log proof.
    ...(witnesses === undefined
      ? {}
      : { RECEIPTS: '2', LOG_WITNESSES: witnesses.map(({ vkey, url }) => `${vkey}@${url}`).join() }),
  }
}

function toOidcEnv({ issuer, clientId, clientSecret }: CoordinatorOidc): Environment {
  return clientSecret === undefined
    ? { OIDC_PAGE_ISSUER: issuer, OIDC_PAGE_CLIENT_ID: clientId, OIDC_PAGE_DIRECT: 'true' }
    : {
        OIDC_GOOGLE_ISSUER: issuer,
        OIDC_GOOGLE_CLIENT_ID: clientId,
        OIDC_GOOGLE_CLIENT_SECRET: clientSecret,
        OIDC_GOOGLE_NAME: 'Local provider',
      }
}

/** For a coordinator with many calls from one address. */
export const noRateLimits: Environment = {
  RATE_LIMIT_SIGN: 'off',
  RATE_LIMIT_PROVISION: 'off',
  RATE_LIMIT_AUTH: 'off',
  RATE_LIMIT_PROOF: 'off',
}

/** Settings for publishing receipts, for a worker in a separate process or in the coordinator. */
export function toPublisherEnv(parameters: {
  rpcUrl: string
  chainId: number
  contract: string
  key: { privateKey: string } | { file: string }
  confirmIntervalMs: number
  /** Publishes checkpoints of the log to this LogWitness, where `owner` registered the log. Default: one event per signature. */
  logWitness?: { address: string; owner: string } | undefined
}): Environment {
  const { rpcUrl, chainId, contract, key, confirmIntervalMs, logWitness } = parameters
  return {
    RPC_URL: rpcUrl,
    CHAIN_ID: String(chainId),
    ATTESTATIONS_ADDRESS: contract,
    ...('file' in key ? { PUBLISHER_PRIVATE_KEY_FILE: key.file } : { PUBLISHER_PRIVATE_KEY: key.privateKey }),
    // A local chain has no reorganizations.
    CONFIRMATIONS: '1',
    CONFIRM_INTERVAL_MS: String(confirmIntervalMs),
    ...(logWitness === undefined
      ? {}
      : {
          PUBLISH: 'checkpoints',
          LOG_WITNESS_ADDRESS: logWitness.address,
          LOG_WITNESS_OWNER: logWitness.owner,
          // A local chain's gas is free, so proofs don't wait for others.
          PUBLISH_DELAY_MS: '0',
        }),
  }
}

/** Environment of a worker in a separate process, with Kubo as its IPFS node. `publisher` comes from `toPublisherEnv`. */
export function toWorkerEnv(parameters: { databaseUrl: string; publisher: Environment; kuboUrl: string }): Environment {
  const { databaseUrl, publisher, kuboUrl } = parameters
  return { DATABASE_URL: databaseUrl, ...publisher, IPFS_PINNER: 'kubo', IPFS_API_URL: kuboUrl }
}

/** Environment of the web server for the app and the demo site. `isBuilt`: serves the built app instead of its source. */
export function toWebEnv(parameters: {
  port: number
  demoPort: number
  cacheDir: string
  isBuilt?: boolean | undefined
}): Environment {
  const { port, demoPort, cacheDir, isBuilt = false } = parameters
  return { PORT: String(port), DEMO_PORT: String(demoPort), CACHE_DIR: cacheDir, IS_BUILT: String(isBuilt) }
}
