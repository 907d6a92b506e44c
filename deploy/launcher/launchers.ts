import { createLauncher, type LaunchedProgram } from './createLauncher.ts'

/** Path of the repository in an image. */
export const APP = '/app'
export const LAUNCHER = '/bin/launch'
const NODE = '/bin/node'

/** Prevents a signal from opening a debugger. */
export const NODE_FLAGS = ['--disable-sigusr1', '-C', 'source']
/** Images only run in production mode. The services support other modes outside of images. */
export const NODE_ENV = 'NODE_ENV=production'

const pipeline = [
  'RPC_URL',
  'CHAIN_ID',
  'ATTESTATIONS_ADDRESS',
  'PUBLISHER_PRIVATE_KEY_FILE',
  'CONFIRMATIONS',
  'CONFIRM_INTERVAL_MS',
  'PUBLISH',
  'LOG_WITNESS_ADDRESS',
  'LOG_WITNESS_OWNER',
  'PUBLISH_DELAY_MS',
  'PUBLISH_GAS_PER_DAY',
  'PIN_DEADLINE_S',
  'PUBLISH_DEADLINE_S',
  'RECEIPT_RETENTION_D',
  'IPFS_PINNER',
  'IPFS_API_URL',
  'IPFS_API_TOKEN_FILE',
  'IPFS_PINS_URL',
  'IPFS_GATEWAY_URL',
  'WEBHOOK_URL_FILE',
  'WEBHOOK_PRIVATE_KEY_FILE',
  'WEBHOOK_DEADLINE_S',
  'WEBHOOK_TIMEOUT_MS',
]

const coordinatorEnv = [
  'HOST',
  'PORT',
  'METRICS_PORT',
  'PUBLIC_URL',
  'TRUSTED_PROXIES',
  'ALLOWED_ORIGINS',
  'COOKIE_SAMESITE',
  'SESSION_TTL_S',
  'SESSION_IDLE_S',
  // Identity providers are found by the names of their variables.
  'OIDC_*',
  'ENCLAVE_URL',
  'ENCLAVE_POLICY_FILE',
  'COLLATERAL_URL',
  'REPORT_SOURCE',
  'SNP_CERTS_FILE',
  'ENTROPY_SOURCE',
  'ENTROPY_URL',
  'ENTROPY_DRAND',
  'ENTROPY_PUBLIC_KEY',
  'ENTROPY_MAX_AGE_S',
  'ENTROPY_ALLOW_UNSIGNED',
  'ENTROPY_CLIENT_ID',
  'ENTROPY_CLIENT_SECRET_FILE',
  'ENTROPY_AUTH_URL',
  'DATABASE_URL_FILE',
  'SIGN_QUOTA_PER_DAY',
  'RATE_LIMIT_SIGN',
  'RATE_LIMIT_PROVISION',
  'RATE_LIMIT_AUTH',
  'RATE_LIMIT_PROOF',
  'ALLOWED_CHAIN_IDS',
  'RECEIPTS',
  'LOG_WITNESSES',
  'BATCH_LIMIT',
  'PIPELINE_DELAY_MS',
  'WORKER',
  ...pipeline,
]

const toHealth = (scheme: 'http' | 'https', port: number): LaunchedProgram => ({
  args: ['deploy/programs/health.ts', scheme, String(port)],
  env: ['PORT'],
})

/**
 * The programs of each image with their variables. Programs get no others: none that Node, OpenSSL or the loader obey, and no secret values,
 * which come from files.
 */
export const launched = {
  enclave: {
    enclave: {
      args: ['services/enclave/src/main.ts'],
      env: [
        'LISTEN',
        'HOST',
        'PORT',
        'QUOTE_SOURCE',
        'ROOT_SECRET',
        'ROOT_SECRET_POLICY_FILE',
        'ROOT_SECRET_FROM',
        'ROOT_SECRET_BACKUP_FILE',
        'ROOT_SECRET_NEW_BACKUP_FILE',
        'COLLATERAL_URL',
        'OIDC_ISSUERS',
        'ENTROPY_PUBLIC_KEY',
        'ENTROPY_DRAND',
        'ENTROPY_ALLOW_UNSIGNED',
        'IMPLEMENTATIONS',
        'SESSIONS',
        'LOG_ORIGINS',
        'LOG_SERVICE_ORIGINS',
        'LOG_WITNESSES',
        'LOG_QUORUM',
        'CALLER_POLICY_FILE',
        'BATCH_LIMIT',
        'SESSION_TTL_S',
      ],
    },
    health: toHealth('https', 8090),
  },
  coordinator: {
    coordinator: {
      args: ['services/coordinator/src/main.ts'],
      env: coordinatorEnv,
    },
    worker: {
      args: ['services/coordinator/src/worker.ts'],
      env: ['DATABASE_URL_FILE', 'METRICS_PORT', ...pipeline],
    },
    // Checks coordinators, and workers, whose settings are a subset.
    doctor: { args: ['services/coordinator/src/doctor.ts'], takesArguments: true, env: coordinatorEnv },
    admin: {
      args: ['services/coordinator/src/admin.ts'],
      takesArguments: true,
      env: ['DATABASE_URL_FILE'],
    },
    health: toHealth('http', 8080),
    metrics: { args: ['deploy/programs/metrics.ts', '9464', '9465'], env: [] },
    'read-backup': { args: ['deploy/programs/readBackup.ts'], takesArguments: true, env: [] },
  },
  web: {
    web: { args: ['deploy/web/server.ts'], env: ['HOST', 'PORT', 'WEB_CONFIG_FILE'] },
    health: toHealth('http', 8088),
  },
  witness: {
    witness: {
      args: ['services/witness/src/main.ts'],
      env: ['HOST', 'PORT', 'METRICS_PORT', 'WITNESS_DIR', 'WITNESS_LOGS_FILE'],
    },
    key: { args: ['services/witness/src/newKey.ts'], takesArguments: true, env: [] },
    health: toHealth('http', 8095),
    metrics: { args: ['deploy/programs/metrics.ts', '9464', '9465'], env: [] },
  },
} satisfies Record<string, Record<string, LaunchedProgram>>

export type LaunchedImage = keyof typeof launched

/** The program that an image starts by this name, or by default. */
export function launchedBy(image: LaunchedImage, name: string = image): LaunchedProgram | undefined {
  const programs: Record<string, LaunchedProgram> = launched[image]
  return Object.hasOwn(programs, name) ? programs[name] : undefined
}

/** All scripts that an image starts. */
export function listScripts(image: LaunchedImage): string[] {
  const programs: Record<string, LaunchedProgram> = launched[image]
  return [...new Set(Object.values(programs).map(({ args }) => args[0] ?? ''))]
}

/** The launcher of an image. Only tests set `node` and `folder`. */
export function createImageLauncher(image: LaunchedImage, { node = NODE, folder = APP } = {}): Uint8Array {
  return createLauncher({ node, flags: NODE_FLAGS, folder, variable: NODE_ENV, programs: launched[image] })
}
