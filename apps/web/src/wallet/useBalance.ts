import { type ServiceError, useService } from '@countersign/sdk'
import { useCallback, useEffect, useRef, useState } from 'react'
import { toServiceError } from '../words/toServiceError.ts'

export type Balance = {
  /** The last that was read; null before the first. */
  wei: bigint | null
  isLoading: boolean
  error: ServiceError | null
  refresh: () => Promise<void>
}

/** What an address holds, read at once and whenever it is asked for. */
export function useBalance(address: `0x${string}`): Balance {
  const { client } = useService()
  const [state, setState] = useState<Omit<Balance, 'refresh'>>({ wei: null, isLoading: true, error: null })
  const latest = useRef(0)

  const refresh = useCallback(async () => {
    latest.current += 1
    const turn = latest.current
    // An answer that was overtaken would show an older balance.
    const settle = (change: Partial<Balance>) => {
      if (turn === latest.current) setState((before) => ({ ...before, isLoading: false, ...change }))
    }
    setState((before) => ({ ...before, isLoading: true }))
    try {
      settle({ wei: await client.publicClient.getBalance({ address }), error: null })
    } catch (error) {
      settle({ error: toServiceError(error) })
    }
  }, [client, address])

  useEffect(() => {
    void refresh()
    return () => {
      latest.current += 1
    }
  }, [refresh])

  return { ...state, refresh }
}
