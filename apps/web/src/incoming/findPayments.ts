import type { Hex } from '@countersign/sdk'
import { BaseError, HttpRequestError, type PublicClient, RpcRequestError } from 'viem'
import type { Token } from '../config.ts'
import {
  type Found,
  type Incoming,
  type IncomingFault,
  type IncomingState,
  type SearchedRange,
  toTime,
} from './payment.ts'
import { type BalanceChain, scanBalance } from './scanBalance.ts'
import { type LogChain, scanTransfers } from './scanTransfers.ts'

export type IncomingChain = BalanceChain & LogChain & Pick<PublicClient, 'getBlockNumber'>

/** The first range covers a day or more on most chains. Some nodes reject it because they keep or search fewer blocks. */
const RANGES = [10_000n, 100n]
/** Blocks that a reorganization may still replace. */
const UNSETTLED_BLOCKS = 12n

export type FindPaymentsParameters = {
  address: Hex
  tokens: readonly Token[]
  known: IncomingState
  signal: AbortSignal
}

/** Searches the blocks since the last search. The first search goes back as far as the node allows. Rejects only when aborted. */
export async function findPayments(
  chain: IncomingChain,
  { address, tokens, known, signal }: FindPaymentsParameters,
): Promise<IncomingState> {
  let head: bigint
  try {
    head = await chain.getBlockNumber({ cacheTime: 0 })
  } catch (error) {
    signal.throwIfAborted()
    const fault = toFault(error)
    return { ...known, ether: fault, tokens: tokens.length === 0 ? null : fault }
  }
  const parameters = { address, toBlock: head, signal }
  const [ether, transfers] = [
    await searchBack(chain, {
      head,
      signal,
      searched: known.ether,
      scan: (fromBlock) => scanBalance(chain, { ...parameters, fromBlock }),
    }),
    tokens.length === 0
      ? null
      : await searchBack(chain, {
          head,
          signal,
          searched: known.tokens,
          scan: (fromBlock) => scanTransfers(chain, { ...parameters, tokens, fromBlock }),
        }),
  ]
  const kept = known.payments.filter(({ token, blockNumber }) => {
    const outcome = token === null ? ether : transfers
    return blockNumber <= head && (outcome === null || blockNumber <= outcome.scannedFrom)
  })
  return {
    payments: [...kept, ...ether.payments, ...(transfers?.payments ?? [])],
    ether: ether.searched,
    tokens: transfers?.searched ?? null,
  }
}

type SearchBackParameters = {
  head: bigint
  searched: SearchedRange | IncomingFault | null
  scan: (fromBlock: bigint) => Promise<Found>
  signal: AbortSignal
}

type Outcome = {
  payments: readonly Incoming[]
  searched: SearchedRange | IncomingFault
  /** Earlier results for blocks after this one are replaced. */
  scannedFrom: bigint
}

async function searchBack(
  chain: IncomingChain,
  { head, searched, scan, signal }: SearchBackParameters,
): Promise<Outcome> {
  // The node would reject the query again.
  if (searched === 'refused') return { payments: [], searched, scannedFrom: head }
  const last = searched !== null && typeof searched === 'object' && searched.toBlock <= head ? searched : null
  const starts = RANGES.map((range) => (head > range ? head - range : 0n))
  if (last !== null) starts[0] = last.toBlock
  let fault: IncomingFault = 'refused'
  for (const start of new Set(starts)) {
    try {
      const { payments, fromBlock } = await scan(start)
      const isOn = last !== null && fromBlock <= last.toBlock
      const since = isOn
        ? last
        : { fromBlock, since: toTime((await chain.getBlock({ blockNumber: fromBlock })).timestamp) }
      const isYoung = head - since.fromBlock < UNSETTLED_BLOCKS
      const toBlock = isYoung ? since.fromBlock : head - UNSETTLED_BLOCKS
      return { payments, searched: { ...since, toBlock }, scannedFrom: fromBlock }
    } catch (error) {
      signal.throwIfAborted()
      fault = toFault(error)
      // If the node is unreachable, a smaller range fails too.
      if (fault === 'unreachable') break
    }
  }
  return { payments: [], searched: fault, scannedFrom: head }
}

function toFault(error: unknown): IncomingFault {
  if (!(error instanceof BaseError)) return 'refused'
  if (error.walk((cause) => cause instanceof RpcRequestError) !== null) return 'refused'
  const http = error.walk((cause) => cause instanceof HttpRequestError) as HttpRequestError | null
  const status = http?.status ?? 0
  return status >= 400 && status < 500 && status !== 429 ? 'refused' : 'unreachable'
}
