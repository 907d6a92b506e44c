import { type Hex, isPrefixedHex } from '@countersign/protocol'
import {
  ConfigError,
  collectFaults,
  type Env,
  type Fault,
  readInteger,
  readMode,
  readSecret,
  readUrl,
  refuseMisspelt,
  refuseRealChains,
  type SettingFault,
  settingNames,
} from '@countersign/service'
import { type PinnerConfig, type PinnerContext, readPinner } from './ipfs/config.ts'
import type { AnchorTarget } from './publishAnchors.ts'
import { readWebhooks, type WebhookConfig } from './webhook/readWebhooks.ts'

/** The settings for publishing proofs. */
export type PipelineConfig = {
  pinner: PinnerConfig
  chain: { rpcUrl: string; chainId: number; contract: Hex; privateKey: Hex; confirmations: number }
  /** How long a pinned proof waits for others. */
  publishDelayMs: number
  /** Set if checkpoints are published in place of events. */
  logWitness: AnchorTarget | undefined
  /** The gas limit of all new publications in 24 hours. Undefined: none. */
  gasPerDay: bigint | undefined
  pinDeadlineMs: number
  publishDeadlineMs: number
  confirmIntervalMs: number
  webhooks: WebhookConfig | undefined
  /** When receipts of final proofs leave the database. Undefined: never. */
  retentionMs: number | undefined
}

/** Undefined without `RPC_URL`: then this process doesn't publish. */
export function readPipeline(env: Env, context: PinnerContext, fault: Fault): PipelineConfig | undefined {
  if (env.RPC_URL === undefined || env.RPC_URL === '') return undefined
  if (env.CHAIN_ID === undefined || env.CHAIN_ID === '') fault('CHAIN_ID', 'missing')
  const contract = env.ATTESTATIONS_ADDRESS ?? ''
  if (!isPrefixedHex(contract, 20)) fault('ATTESTATIONS_ADDRESS', 'expected 0x and 40 hex digits')
  const seconds = (name: string, fallback: number) =>
    1000 * readInteger(env, name, { fallback, min: 1, max: 2_592_000 }, fault)
  const chainId = readInteger(env, 'CHAIN_ID', { fallback: 1, min: 1, max: Number.MAX_SAFE_INTEGER }, fault)
  if (context.mode === 'staging') refuseRealChains('CHAIN_ID', [chainId], fault)
  const pinner = readPinner(env, context, fault)
  const logWitness = readLogWitness(env, fault)
  const retentionMs = readRetention(env, fault)
  if (retentionMs !== undefined && pinner.kind === 'pinata' && pinner.pinsUrl === undefined) {
    fault('RECEIPT_RETENTION_D', 'requires IPFS_PINS_URL with pinata, because its gateway also serves unpinned blocks')
  }
  return {
    pinner,
    chain: {
      rpcUrl: readUrl(env, 'RPC_URL', '', fault),
      chainId,
      contract: contract.toLowerCase() as Hex,
      privateKey: readPrivateKey(env, context, fault),
      confirmations: readInteger(env, 'CONFIRMATIONS', { fallback: 6, min: 1, max: 1000 }, fault),
    },
    publishDelayMs: readInteger(
      env,
      'PUBLISH_DELAY_MS',
      { fallback: logWitness === undefined ? 0 : 12_000, min: 0, max: 3_600_000 },
      fault,
    ),
    logWitness,
    gasPerDay: readGasPerDay(env, fault),
    pinDeadlineMs: seconds('PIN_DEADLINE_S', 3600),
    publishDeadlineMs: seconds('PUBLISH_DEADLINE_S', 86_400),
    confirmIntervalMs: readInteger(env, 'CONFIRM_INTERVAL_MS', { fallback: 4000, min: 500, max: 600_000 }, fault),
    webhooks: readWebhooks(env, context, fault),
    retentionMs,
  }
}

/** With checkpoints, the worker looks each second whether enough proofs wait. */
export function toPublishStartMs({ publishDelayMs, logWitness }: PipelineConfig): number {
  return logWitness === undefined ? publishDelayMs : Math.min(publishDelayMs, 1_000)
}

/** Undefined with `PUBLISH=events`, the default. */
function readLogWitness(env: Env, fault: Fault): AnchorTarget | undefined {
  const mode = env.PUBLISH || 'events'
  if (mode !== 'events' && mode !== 'checkpoints') fault('PUBLISH', 'expected events or checkpoints')
  if (mode !== 'checkpoints') return undefined
  const readAddress = (name: string) => {
    const text = env[name] ?? ''
    if (!isPrefixedHex(text, 20)) fault(name, 'expected 0x and 40 hex digits with PUBLISH=checkpoints')
    return text.toLowerCase() as Hex
  }
  return { contract: readAddress('LOG_WITNESS_ADDRESS'), owner: readAddress('LOG_WITNESS_OWNER') }
}

type WorkerConfig = {
  databaseUrl: string
  dataDir: string
  metricsPort: number | undefined
  config: PipelineConfig
}

/** Reads the settings of a separate worker. */
export function readWorkerConfig(env: Env, deps: { readFile(path: string): string }): WorkerConfig {
  const { faults, config, ...rest } = inspectWorkerConfig(env, deps)
  if (config === undefined || faults.length > 0) throw new ConfigError(faults)
  return { ...rest, config }
}

/** Returns all faults along with the settings that could be read. */
export function inspectWorkerConfig(
  env: Env,
  { readFile }: { readFile(path: string): string },
): Omit<WorkerConfig, 'config'> & {
  config: PipelineConfig | undefined
  faults: readonly SettingFault[]
} {
  const { faults, fault } = collectFaults()
  refuseMisspelt(env, settingNames, fault)
  const dataDir = env.DATA_DIR || '.countersign'
  const databaseUrl = readDatabaseUrl(env, readFile, fault)
  const config = readPipeline(env, { readFile, mode: readMode(env) }, fault)
  if (config === undefined) fault('RPC_URL', 'missing')
  const metricsPort = readMetricsPort(env, fault)
  return { databaseUrl, dataDir, metricsPort, config, faults }
}

/** The database of all coordinators and workers. Empty with a fault. */
export function readDatabaseUrl(env: Env, readFile: (path: string) => string, fault: Fault): string {
  const databaseUrl = readSecret(env, 'DATABASE_URL', readFile, fault)
  if (databaseUrl === '')
    fault('DATABASE_URL', 'expected a PostgreSQL URL, such as postgres://USER:PASSWORD@HOST:5432/DATABASE')
  return databaseUrl ?? ''
}

/** At least a week, so that an operator can notice a lost pin before the receipt leaves the database. */
function readRetention(env: Env, fault: Fault): number | undefined {
  const days = readInteger(env, 'RECEIPT_RETENTION_D', { fallback: undefined, min: 7, max: 36_500 }, fault)
  return days === undefined ? undefined : days * 86_400_000
}

/** At least the gas limit of one transaction on any chain (EIP-7825), so that every publication fits. */
function readGasPerDay(env: Env, fault: Fault): bigint | undefined {
  const bounds = { fallback: undefined, min: 2 ** 24, max: Number.MAX_SAFE_INTEGER }
  const gas = readInteger(env, 'PUBLISH_GAS_PER_DAY', bounds, fault)
  return gas === undefined ? undefined : BigInt(gas)
}

function readPrivateKey(env: Env, { readFile }: PinnerContext, fault: Fault): Hex {
  const text = readSecret(env, 'PUBLISHER_PRIVATE_KEY', readFile, fault)
  if (text === undefined) return '0x'
  // The message never quotes the key.
  if (!isPrefixedHex(text, 32)) fault('PUBLISHER_PRIVATE_KEY', 'expected 0x and 64 hex digits')
  return text as Hex
}

/** Undefined if metrics are off. */
export function readMetricsPort(env: Env, fault: Fault): number | undefined {
  return readInteger(env, 'METRICS_PORT', { fallback: undefined, min: 0, max: 65_535 }, fault)
}
