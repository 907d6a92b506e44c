import { type ServiceError, useService } from '@countersign/sdk'
import { useCallback, useEffect, useRef, useState } from 'react'
import { type Token, useTokens } from '../config.ts'
import { readTokenBalance } from '../token/erc20.ts'
import { toServiceError } from '../words/explainError.ts'

export type Balance = {
  /** Null until loaded. */
  wei: bigint | null
  /** Null if the token's query failed. */
  tokens: readonly { token: Token; amount: bigint | null }[]
  isLoading: boolean
  error: ServiceError | null
  refresh: () => Promise<void>
}

/** Loads an address's balance at once and on request. */
export function useBalance(address: `0x${string}`): Balance {
  const { client } = useService()
  const [state, setState] = useState<Omit<Balance, 'refresh'>>({
    wei: null,
    tokens: [],
    isLoading: true,
    error: null,
  })
  const tokens = useTokens()
  const latest = useRef(0)

  const refresh = useCallback(async () => {
    latest.current += 1
    const turn = latest.current
    // A late response would show an older balance.
    const update = (change: Partial<Balance>) => {
      if (turn === latest.current) setState((before) => ({ ...before, isLoading: false, ...change }))
    }
    setState((before) => ({ ...before, isLoading: true }))
    try {
      const chain = client.publicClient
      const [wei, held] = await Promise.all([
        chain.getBalance({ address }),
        Promise.all(
          tokens.map(async (token) => ({
            token,
            amount: await readTokenBalance(chain, { token, holder: address }).catch(() => null),
          })),
        ),
      ])
      update({ wei, tokens: held, error: null })
    } catch (error) {
      update({ error: toServiceError(error) })
    }
  }, [client, address, tokens])

  useEffect(() => {
    void refresh()
    return () => {
      latest.current += 1
    }
  }, [refresh])

  return { ...state, refresh }
}
