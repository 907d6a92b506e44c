import type { Log } from '@countersign/service'
import type { Chain, Schedule } from '../ports.ts'
import { toReason } from '../toReason.ts'

/** What operators watch about the publisher's account. */
export type BalanceMetrics = { observeBalance(account: string, balance: { wei: bigint; gas: bigint }): void }

export type WatchBalanceDeps = {
  chain: Pick<Chain, 'account' | 'getBalance' | 'getFees'>
  schedule: Schedule
  log: Pick<Log, 'warn'>
  metrics: BalanceMetrics
}

/** Nobody waits for it, and providers count requests. */
const EVERY_MS = 60_000

/** Reads once a minute what the publisher has, and how much gas that pays for. Returns what ends it. */
export function watchBalance({ chain, schedule, log, metrics }: WatchBalanceDeps): () => void {
  let cancel = () => {}
  let isStopped = false
  /** Said once, until it can be read again: the stages say more about a chain that is gone. */
  let isSaid = false

  async function read() {
    try {
      const [wei, { maxFeePerGas }] = await Promise.all([chain.getBalance(), chain.getFees()])
      metrics.observeBalance(chain.account, { wei, gas: maxFeePerGas === 0n ? wei : wei / maxFeePerGas })
      isSaid = false
    } catch (error) {
      if (!isSaid && !isStopped) log.warn({ msg: 'Could not read the publisher’s balance', ...toReason(error) })
      isSaid = true
    }
    if (!isStopped) cancel = schedule(() => void read(), EVERY_MS)
  }

  void read()
  return () => {
    isStopped = true
    cancel()
  }
}
