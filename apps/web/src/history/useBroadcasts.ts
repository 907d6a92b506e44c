import { type Hex, type TransactionSummary, useService } from '@countersign/sdk'
import { useCallback, useRef, useState } from 'react'
import { useWhileVisible } from '../ui/useWhileVisible.ts'
import { type Broadcast, isSettled, readBroadcast } from './readBroadcast.ts'

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
          ...{ from: transaction.walletAddress ?? from, transaction, now: Date.now() },
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
