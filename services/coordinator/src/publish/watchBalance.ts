import type { Log } from '@countersign/service'
import type { Schedule } from '../system.ts'
import { toReason } from '../toReason.ts'
import type { Chain } from './chain/viemChain.ts'
import { repeat } from './repeat.ts'
import type { WarnOf } from './webhook/createWarner.ts'

/** What operators watch about the publisher's account. */
export type BalanceMetrics = { observeBalance(account: string, balance: { wei: bigint; gas: bigint }): void }

export type WatchBalanceDeps = {
  chain: Pick<Chain, 'account' | 'chainId' | 'getBalance' | 'getFees'>
  schedule: Schedule
  log: Pick<Log, 'warn'>
  metrics: BalanceMetrics
  warnOf: WarnOf
}

/** Nobody waits for it, and providers count requests. */
const EVERY_MS = 60_000
/** As the alert `CountersignPublisherShort` has it: some hundred publications of one proof, or a few large ones. */
const SHORT_GAS = 20_000_000n

/** Reads once a minute what the publisher has and how much gas that pays for, and warns when it is little. Returns what ends it. */
export function watchBalance({ chain, schedule, log, metrics, warnOf }: WatchBalanceDeps): () => void {
  /** Said once, until it can be read again: the stages say more about a chain that is gone. */
  let isSaid = false

  async function read(signal: AbortSignal) {
    try {
      const [wei, { maxFeePerGas }] = await Promise.all([chain.getBalance(), chain.getFees()])
      const { account, chainId } = chain
      const gas = maxFeePerGas === 0n ? wei : wei / maxFeePerGas
      metrics.observeBalance(account, { wei, gas })
      if (gas < SHORT_GAS) void warnOf('publisher.short_of_gas', { account, chainId, balanceWei: wei.toString() })
      isSaid = false
    } catch (error) {
      if (!isSaid && !signal.aborted) log.warn({ msg: 'Could not read the publisher’s balance', ...toReason(error) })
      isSaid = true
    }
  }

  return repeat(read, { schedule, everyMs: EVERY_MS }).stop
}
