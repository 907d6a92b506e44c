/** The environment of each process of the service, once. What a caller wants otherwise it spreads over it. */
export type Environment = Record<string, string>

type Oidc = { issuer: string; clientId: string; clientSecret: string }

/** The app's origin, unless a caller serves one. */
export const APP_ORIGIN = 'http://localhost:5173'

/** Of `startSatellite` without a seed; written out, since computing it would load the simulator. */
const SATELLITE_KEY = '18edb664c40ab63537e6172fec37395f602afbba7a6c1b983ea80ba0b7f35f11'

/** A log that the enclave insists on. A quorum is the smallest majority of the witnesses. */
export type EnclaveLogSettings = {
  /** Its own, the preferred one first. */
  origins: readonly string[]
  /** Of all enclaves; its own by default. */
  serviceOrigins?: readonly string[]
  /** Verifier keys. */
  witnesses: readonly string[]
}

export function toEnclaveEnv(parameters: {
  /** Any free one by default. */
  port?: number
  rootSecretFile: string
  oidc: Pick<Oidc, 'issuer' | 'clientId'>
  /** Of the source that the coordinators take samples from; the simulated satellite by default. */
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
  /** The first is where sign-in returns to. */
  allowedOrigins?: readonly string[]
  oidc: Oidc
  enclaveUrls: readonly string[]
  satellite: { url: string; publicKey: string }
  /** For the embedded IPFS node. */
  dataDir?: string
  databaseUrl: string
  /** Where the enclaves have logs: who cosigns them, and where. */
  witnesses?: readonly { vkey: string; url: string }[] | undefined
}): Environment {
  const { port, allowedOrigins = [APP_ORIGIN], oidc, enclaveUrls, satellite, dataDir, databaseUrl } = parameters
  const { witnesses } = parameters
  return {
    PORT: String(port),
    MOCK_ATTESTATION: 'true',
    // App and service are both on localhost: one site, so that lax is enough. Plain http allows no more.
    COOKIE_SAMESITE: 'lax',
    ALLOWED_ORIGINS: allowedOrigins.join(),
    OIDC_GOOGLE_ISSUER: oidc.issuer,
    OIDC_GOOGLE_CLIENT_ID: oidc.clientId,
    OIDC_GOOGLE_CLIENT_SECRET: oidc.clientSecret,
    OIDC_GOOGLE_NAME: 'Local provider',
    ENCLAVE_URL: enclaveUrls.join(),
    ENTROPY_URL: satellite.url,
    ENTROPY_PUBLIC_KEY: satellite.publicKey,
    ...(dataDir === undefined ? {} : { DATA_DIR: dataDir }),
    DATABASE_URL: databaseUrl,
    // A proof of the log is part of receipts of version 2 alone.
    ...(witnesses === undefined
      ? {}
      : { RECEIPTS: '2', LOG_WITNESSES: witnesses.map(({ vkey, url }) => `${vkey}@${url}`).join() }),
  }
}

/** For a coordinator that many calls from one address are made to. */
export const noRateLimits: Environment = {
  RATE_LIMIT_SIGN: 'off',
  RATE_LIMIT_PROVISION: 'off',
  RATE_LIMIT_AUTH: 'off',
  RATE_LIMIT_PROOF: 'off',
}

/** Where receipts are published, and as whom: of a worker, alone or in its coordinator. */
export function toPublisherEnv(parameters: {
  rpcUrl: string
  chainId: number
  contract: string
  key: { privateKey: string } | { file: string }
  confirmIntervalMs: number
}): Environment {
  const { rpcUrl, chainId, contract, key, confirmIntervalMs } = parameters
  return {
    RPC_URL: rpcUrl,
    CHAIN_ID: String(chainId),
    ATTESTATIONS_ADDRESS: contract,
    ...('file' in key ? { PUBLISHER_PRIVATE_KEY_FILE: key.file } : { PUBLISHER_PRIVATE_KEY: key.privateKey }),
    // A local chain is never reorganised by itself.
    CONFIRMATIONS: '1',
    CONFIRM_INTERVAL_MS: String(confirmIntervalMs),
  }
}

/** For a worker alone, with Kubo as its IPFS node. `publisher` is from `toPublisherEnv`. */
export function toWorkerEnv(parameters: { databaseUrl: string; publisher: Environment; kuboUrl: string }): Environment {
  const { databaseUrl, publisher, kuboUrl } = parameters
  return { DATABASE_URL: databaseUrl, ...publisher, IPFS_PINNER: 'kubo', IPFS_API_URL: kuboUrl }
}

/** For the server of the web app, and of the site to sign in to. `isBuilt`: the app as it is deployed, not from source. */
export function toWebEnv(parameters: {
  port: number
  demoPort: number
  cacheDir: string
  isBuilt?: boolean | undefined
}): Environment {
  const { port, demoPort, cacheDir, isBuilt = false } = parameters
  return { PORT: String(port), DEMO_PORT: String(demoPort), CACHE_DIR: cacheDir, IS_BUILT: String(isBuilt) }
}
