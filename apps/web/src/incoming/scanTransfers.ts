import { isAddressEqual, type PublicClient } from 'viem'
import type { Token } from '../config.ts'
import { type Found, type Incoming, toTime } from './payment.ts'
import type { ScanParameters } from './scanBalance.ts'

export type LogChain = Pick<PublicClient, 'getLogs' | 'getBlock'>

const TRANSFER = {
  type: 'event',
  name: 'Transfer',
  inputs: [
    { name: 'from', type: 'address', indexed: true },
    { name: 'to', type: 'address', indexed: true },
    { name: 'value', type: 'uint256', indexed: false },
  ],
} as const

/** Each needs the time of its block. */
const MAX_TRANSFERS = 20

/** Finds token payments by their logs and returns the newest. Only logs of configured tokens count. */
export async function scanTransfers(
  chain: LogChain,
  { address, tokens, fromBlock, toBlock, signal }: ScanParameters & { tokens: readonly Token[] },
): Promise<Found> {
  if (fromBlock >= toBlock) return { payments: [], fromBlock }
  const logs = await chain.getLogs({
    address: tokens.map((token) => token.address),
    event: TRANSFER,
    args: { to: address },
    fromBlock: fromBlock + 1n,
    toBlock,
    strict: true,
  })
  const found = logs.flatMap((log): Omit<Incoming, 'time'>[] => {
    const token = tokens.find((one) => isAddressEqual(one.address, log.address))
    const { from, to, value: amount } = log.args
    const isPayment = isAddressEqual(to, address) && !isAddressEqual(from, address)
    // Anyone can emit a zero-value transfer from an address that resembles a known one.
    if (token === undefined || !isPayment || amount === 0n) return []
    const { transactionHash: txHash, logIndex, blockNumber } = log
    return [{ key: `${txHash} ${logIndex}`, from, txHash, amount, token, blockNumber }]
  })
  const newest = found.toSorted((left, right) => Number(right.blockNumber - left.blockNumber))
  const cut = newest[MAX_TRANSFERS]?.blockNumber
  const shown = cut === undefined ? newest : newest.filter(({ blockNumber }) => blockNumber > cut)
  const times = new Map<bigint, string>()
  for (const { blockNumber } of shown) {
    if (times.has(blockNumber)) continue
    signal.throwIfAborted()
    times.set(blockNumber, toTime((await chain.getBlock({ blockNumber })).timestamp))
  }
  const payments = shown.map((payment) => ({ ...payment, time: times.get(payment.blockNumber) ?? '' }))
  return { payments, fromBlock: cut ?? fromBlock }
}
