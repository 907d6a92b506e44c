import { type Hex, type TransactionSummary, useService } from '@countersign/sdk'
import { useCallback, useRef, useState } from 'react'
import type { PublicClient } from 'viem'
import { useWhileVisible } from '../ui/useWhileVisible.ts'

const INTERVAL_MS = 15_000
/** A node that doesn't know an old transaction won't learn about it later, so it's queried only once. */
const FORGOTTEN_AFTER_MS = 3_600_000

/** Queries the chain for the state of each shown transaction, by slug. After an error, the next run tries again. */
export function useBroadcasts(transactions: readonly TransactionSummary[], from: Hex): ReadonlyMap<string, Broadcast> {
  const { client } = useService()
  const { chainId } = client.config
  const [broadcasts, setBroadcasts] = useState<ReadonlyMap<string, Broadcast>>(new Map())
  const known = useRef(broadcasts)
  known.current = broadcasts
  const run = useCallback(
    async (signal: AbortSignal) => {
      for (const transaction of transactions) {
        const { slug } = transaction
        const isAsked = transaction.kind === undefined && transaction.chainId === chainId
        const before = known.current.get(slug)
        const isForgotten = before === 'unknown' && Date.now() - Date.parse(transaction.createdAt) > FORGOTTEN_AFTER_MS
        if (!isAsked || isForgotten || isFinal(before)) continue
        const broadcast = await readBroadcast(client.publicClient, {
          from: transaction.walletAddress ?? from,
          transaction,
          now: Date.now(),
        })
        if (signal.aborted) return
        if (known.current.get(slug) !== broadcast) setBroadcasts((before) => new Map(before).set(slug, broadcast))
      }
    },
    [client, chainId, transactions, from],
  )
  useWhileVisible(run, INTERVAL_MS)
  return broadcasts
}

/** A signed transaction's state according to the node. `unknown`: its nonce is used, by this or another transaction. */
export type Broadcast = 'included' | 'reverted' | 'waiting' | 'not_broadcast' | 'unknown'

export type SignedTransaction = Extract<TransactionSummary, { kind?: undefined }>

type Chain = Pick<PublicClient, 'request' | 'getTransactionCount'>

/** A node may not yet know a transaction that was sent to another node. */
const GRACE_MS = 60_000

export async function readBroadcast(
  chain: Chain,
  { from, transaction, now }: { from: Hex; transaction: SignedTransaction; now: number },
): Promise<Broadcast> {
  const { txHash, nonce, createdAt } = transaction
  const outcome = await readOutcome(chain, txHash)
  if (outcome !== undefined) return outcome
  const pending = await chain.request({ method: 'eth_getTransactionByHash', params: [txHash] })
  if (pending !== null) return 'waiting'
  const count = await chain.getTransactionCount({ address: from, blockTag: 'latest' })
  // A block may have arrived in between. Otherwise the nonce doesn't prove that another transaction used it: nodes forget the blocks of old
  // transactions, and a load balancer may mix nodes that are up to date with nodes that lag.
  if (count > nonce) return (await readOutcome(chain, txHash)) ?? 'unknown'
  return now - Date.parse(createdAt) < GRACE_MS ? 'waiting' : 'not_broadcast'
}

async function readOutcome(chain: Chain, txHash: Hex): Promise<'included' | 'reverted' | undefined> {
  const receipt = await chain.request({ method: 'eth_getTransactionReceipt', params: [txHash] })
  if (receipt === null) return undefined
  return receipt.status === '0x0' ? 'reverted' : 'included'
}

function isFinal(broadcast: Broadcast | undefined): boolean {
  return broadcast === 'included' || broadcast === 'reverted'
}
