import type { Log } from '@countersign/service'
import { type Decorate, keepOriginal } from '../dependencies.ts'
import type { PipelineStore } from '../store/openStore.ts'
import { type Clock, type Schedule, systemSchedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import { type Chain, createViemChain } from './chain/viemChain.ts'
import type { PipelineConfig } from './config.ts'
import type { PinnerConfig } from './ipfs/config.ts'
import type { GetBlock, Pinner } from './ipfs/pinner.ts'
import { repeat } from './repeat.ts'
import { startWebhooks, type WebhookMetrics, type Webhooks } from './webhook/startWebhooks.ts'
import { createWarner, type WarnOf } from './webhook/warner.ts'
import { type StageMetrics, startWorker } from './worker.ts'

type Pipeline = {
  /** Undefined if another service serves the blocks. */
  getBlock?: GetBlock
  stop(): Promise<void>
}

const NO_METRICS: StageMetrics & BalanceMetrics & WebhookMetrics = {
  observeStage() {},
  observeLogSize() {},
  observeBalance() {},
  observeWebhook() {},
}

/** Starts pinner, chain and worker from their settings. */
export async function startPipeline(deps: {
  config: PipelineConfig
  dataDir: string
  store: PipelineStore
  clock: Clock
  log: Log
  metrics?: StageMetrics & BalanceMetrics & WebhookMetrics
  decorate?: Decorate
}): Promise<Pipeline> {
  const { config, dataDir, store, clock, log, metrics = NO_METRICS, decorate = keepOriginal } = deps
  const { pinner: created, getBlock } = await createPinner(config.pinner, dataDir)
  const pinner = decorate('pinner', created)
  let webhooks: Webhooks | undefined
  try {
    const { confirmations, ...chainConfig } = config.chain
    const chain = decorate('chain', createViemChain(chainConfig))
    const warnOf = createWarner({ events: store.webhookEvents, clock, log })
    // Not an error: the stages report a wrong chain and retry an unavailable one.
    await chain.assertReady().catch((error: unknown) => {
      log.warn({ msg: 'The chain is not ready', ...toReason(error) })
    })
    webhooks = await startWebhooks({ store: store.webhooks, clock, log, metrics, config: config.webhooks })
    const worker = await startWorker({
      store,
      pinner,
      chain,
      clock,
      log,
      metrics,
      config: { ...config, confirmations },
    })
    const endWatching = watchBalance({ chain, schedule: systemSchedule, log, metrics, warnOf })
    log.info({ msg: 'Started the worker', name: pinner.name, address: chain.account })
    return {
      ...(getBlock === undefined ? {} : { getBlock }),
      async stop() {
        endWatching()
        await Promise.all([worker.stop(), webhooks?.stop()])
        await pinner.stop()
      },
    }
  } catch (error) {
    await webhooks?.stop()
    await pinner.stop()
    throw error
  }
}

/** Loads only the configured pinner, because the embedded node has a hundred packages. */
async function createPinner(config: PinnerConfig, dataDir: string): Promise<{ pinner: Pinner; getBlock?: GetBlock }> {
  if (config.kind === 'helia') {
    const { createHeliaPinner } = await import('./ipfs/helia.ts')
    const { listen } = config
    const { pinner, getBlock } = await createHeliaPinner({
      dataDir,
      ...(listen === undefined ? {} : { listen: [listen] }),
    })
    return { pinner, getBlock }
  }
  const { createRemotePinner } = await import('./ipfs/createRemotePinner.ts')
  return { pinner: createRemotePinner(config, fetch) }
}

/** Metrics of the publisher's account. */
export type BalanceMetrics = { observeBalance(account: string, balance: { wei: bigint; gas: bigint }): void }

type WatchBalanceDeps = {
  chain: Pick<Chain, 'account' | 'chainId' | 'getBalance' | 'getFees'>
  schedule: Schedule
  log: Pick<Log, 'warn'>
  metrics: BalanceMetrics
  warnOf: WarnOf
}

/** Rarely, because providers count requests. */
const EVERY_MS = 60_000
/** The limit of the alert `CountersignPublisherShort`: a few hundred publications of one proof, or a few large ones. */
const SHORT_GAS = 20_000_000n

/** Reads the publisher's balance once a minute, and warns if it pays for little gas. Returns a function that stops it. */
export function watchBalance({ chain, schedule, log, metrics, warnOf }: WatchBalanceDeps): () => void {
  /** Logs an unreadable balance once, because the stages log more about an unavailable chain. */
  let isReported = false

  async function read(signal: AbortSignal) {
    try {
      const [wei, { maxFeePerGas }] = await Promise.all([chain.getBalance(), chain.getFees()])
      const { account, chainId } = chain
      const gas = maxFeePerGas === 0n ? wei : wei / maxFeePerGas
      metrics.observeBalance(account, { wei, gas })
      if (gas < SHORT_GAS) void warnOf('publisher.short_of_gas', { account, chainId, balanceWei: wei.toString() })
      isReported = false
    } catch (error) {
      if (!isReported && !signal.aborted)
        log.warn({ msg: 'Could not read the publisher’s balance', ...toReason(error) })
      isReported = true
    }
  }

  return repeat(read, { schedule, everyMs: EVERY_MS }).stop
}
