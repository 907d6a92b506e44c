import { ChainError } from '../chain/chainError.ts'
import type { Chain, Clock } from '../ports.ts'
import type { WarnOf } from './createWarner.ts'

/** As many publications like the last one should still be paid for, at the fee that it offered. */
const RESERVE = 20n
const LOOK_EVERY_MS = 60_000

/** The same chain, which warns when the publisher's account cannot pay, or not for long. No call waits for a warning. */
export function watchFunds(chain: Chain, { clock, warnOf }: { clock: Clock; warnOf: WarnOf }): Chain {
  const { account, chainId } = chain
  let costWei = 0n
  let lookedAt = Number.NEGATIVE_INFINITY

  function warn(balanceWei: bigint | null) {
    void warnOf('publisher.short_of_gas', { account, chainId, balanceWei: balanceWei?.toString() ?? null })
  }
  async function look() {
    if (clock.now() < lookedAt + LOOK_EVERY_MS) return
    lookedAt = clock.now()
    const balanceWei = await chain.getBalance().catch(() => undefined)
    if (balanceWei !== undefined && balanceWei < RESERVE * costWei) warn(balanceWei)
  }
  async function watch<Result>(call: Promise<Result>): Promise<Result> {
    try {
      return await call
    } catch (error) {
      if (error instanceof ChainError && error.code === 'insufficient_funds') warn(null)
      throw error
    }
  }

  return {
    ...chain,
    estimateGas: (call) => watch(chain.estimateGas(call)),
    sign(transaction) {
      costWei = transaction.gas * transaction.maxFeePerGas
      return chain.sign(transaction)
    },
    async send(raw) {
      await watch(chain.send(raw))
      void look()
    },
  }
}
