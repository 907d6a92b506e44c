import type { Hex } from '@countersign/sdk'
import { isAddressEqual, type PublicClient } from 'viem'
import { type Found, type Incoming, toTime } from './payment.ts'

export type BalanceChain = Pick<PublicClient, 'getBalance' | 'getTransactionCount' | 'getBlock' | 'request'>

export type ScanParameters = { address: Hex; fromBlock: bigint; toBlock: bigint; signal: AbortSignal }

type State = { balance: bigint; nonce: number }

/** Maximum number of queries for one account at one block. An idle account needs four, whatever the range. */
const MAX_QUERIES = 120

/**
 * Finds ether payments by bisection: if balance and nonce are equal at two blocks, the blocks between have no payments and aren't read.
 * Searches the newest blocks first, so that the searched range has no gap when the limit is reached.
 */
export async function scanBalance(chain: BalanceChain, parameters: ScanParameters): Promise<Found> {
  const { address, fromBlock, toBlock, signal } = parameters
  const states = new Map<bigint, State>()
  const payments: Incoming[] = []
  let reached = toBlock
  let queries = 0

  async function read(blockNumber: bigint): Promise<State> {
    const known = states.get(blockNumber)
    if (known !== undefined) return known
    signal.throwIfAborted()
    queries += 2
    const [balance, nonce] = await Promise.all([
      chain.getBalance({ address, blockNumber }),
      chain.getTransactionCount({ address, blockNumber }),
    ])
    states.set(blockNumber, { balance, nonce })
    return { balance, nonce }
  }

  async function bisect(low: bigint, high: bigint): Promise<void> {
    if (queries >= MAX_QUERIES) return
    const [before, after] = [await read(low), await read(high)]
    const isSame = before.balance === after.balance && before.nonce === after.nonce
    if (!isSame && high - low > 1n) {
      const middle = (low + high) / 2n
      await bisect(middle, high)
      return bisect(low, middle)
    }
    if (!isSame) {
      signal.throwIfAborted()
      queries += 1
      payments.push(...(await readBlock(chain, { address, blockNumber: high, gain: after.balance - before.balance })))
    }
    reached = low
  }

  if (fromBlock < toBlock) await bisect(fromBlock, toBlock)
  return { payments, fromBlock: reached }
}

type BlockParameters = { address: Hex; blockNumber: bigint; gain: bigint }

/** Returns the payments in a block that increased the balance by `gain`. */
async function readBlock(chain: BalanceChain, { address, blockNumber, gain }: BlockParameters): Promise<Incoming[]> {
  const { transactions, timestamp } = await chain.getBlock({ blockNumber, includeTransactions: true })
  const isOurs = (other: Hex | null) => other !== null && isAddressEqual(other, address)
  const time = toTime(timestamp)
  const payments: Incoming[] = []
  let rest = gain
  for (const { hash, from, to, value } of transactions) {
    if (!isOurs(to) || isOurs(from) || value === 0n) continue
    const receipt = await chain.request({ method: 'eth_getTransactionReceipt', params: [hash] })
    if (receipt?.status === '0x0') continue
    rest -= value
    payments.push({ key: hash, from, txHash: hash, amount: value, token: null, blockNumber, time })
  }
  // If the address also sent a transaction in this block, the gain may be a refund from it.
  if (rest > 0n && !transactions.some(({ from }) => isOurs(from))) {
    const key = `block ${blockNumber}`
    payments.push({ key, from: null, txHash: null, amount: rest, token: null, blockNumber, time })
  }
  return payments
}
