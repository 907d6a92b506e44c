import { type Hex, type TransactionSummary, useService } from '@countersign/sdk'
import { useCallback, useRef, useState } from 'react'
import type { PublicClient } from 'viem'
import { useWhileVisible } from '../ui/useWhileVisible.ts'

const INTERVAL_MS = 15_000
/** A node that has forgotten an older one does not remember it: each is asked about once. */
const FORGOTTEN_AFTER_MS = 3_600_000

/** What the chain knows of the transactions that are shown, by slug. A node that fails is asked again at the next turn. */
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
        if (!isAsked || isForgotten || isSettled(before)) continue
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

/** What the node knows of a signed transaction. `unknown`: its nonce is used, by itself or by another one. */
export type Broadcast = 'included' | 'reverted' | 'waiting' | 'not_broadcast' | 'unknown'

export type SignedTransaction = Extract<TransactionSummary, { kind?: undefined }>

type Chain = Pick<PublicClient, 'request' | 'getTransactionCount'>

/** A node may not have yet what another one was just given. */
const GRACE_MS = 60_000

/** Asks the node for a signed transaction. */
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
  // Its block may have come in between. If not, that is no evidence that another one has the nonce: nodes forget which block an old
  // transaction is in, and behind one address a node that is late may answer after one that is not.
  if (count > nonce) return (await readOutcome(chain, txHash)) ?? 'unknown'
  return now - Date.parse(createdAt) < GRACE_MS ? 'waiting' : 'not_broadcast'
}

async function readOutcome(chain: Chain, txHash: Hex): Promise<'included' | 'reverted' | undefined> {
  const receipt = await chain.request({ method: 'eth_getTransactionReceipt', params: [txHash] })
  if (receipt === null) return undefined
  return receipt.status === '0x0' ? 'reverted' : 'included'
}

/** Whether the answer can no longer change. */
function isSettled(broadcast: Broadcast | undefined): boolean {
  return broadcast === 'included' || broadcast === 'reverted'
}
