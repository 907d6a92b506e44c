import { type ServiceError, useService } from '@countersign/sdk'
import { useCallback, useEffect, useRef, useState } from 'react'
import { type Token, useTokens } from '../config.ts'
import { readTokenBalance } from '../token/erc20.ts'
import { toServiceError } from '../words/explainError.ts'

export type Balance = {
  /** The last that was read; null before the first. */
  wei: bigint | null
  /** Null for a token that did not answer. */
  tokens: readonly { token: Token; amount: bigint | null }[]
  isLoading: boolean
  error: ServiceError | null
  refresh: () => Promise<void>
}

/** What an address holds, read at once and whenever it is asked for. */
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
    // An answer that was overtaken would show an older balance.
    const settle = (change: Partial<Balance>) => {
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
      settle({ wei, tokens: held, error: null })
    } catch (error) {
      settle({ error: toServiceError(error) })
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
