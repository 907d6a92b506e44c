import { useService } from '@countersign/sdk'
import { useEffect, useState } from 'react'

/** Whether the chain has taken a transaction into a block, and whether it did what it should. */
export type Inclusion = { state: 'waiting' } | { state: 'included' | 'reverted'; blockNumber: bigint }

const POLL_INTERVAL_MS = 2000

/** Asks for the receipt of a transaction until there is one. A node that fails is asked again: there is nothing to decide yet. */
export function useInclusion(hash: `0x${string}`): Inclusion {
  const { client } = useService()
  const [inclusion, setInclusion] = useState<Inclusion>({ state: 'waiting' })
  useEffect(() => {
    let isWanted = true
    let timer: ReturnType<typeof setTimeout> | undefined
    async function poll() {
      try {
        const { status, blockNumber } = await client.publicClient.getTransactionReceipt({ hash })
        if (isWanted) setInclusion({ state: status === 'success' ? 'included' : 'reverted', blockNumber })
      } catch {
        if (isWanted) timer = setTimeout(poll, POLL_INTERVAL_MS)
      }
    }
    setInclusion({ state: 'waiting' })
    void poll()
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [client, hash])
  return inclusion
}
