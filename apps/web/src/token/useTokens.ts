import { useMemo } from 'react'
import { type Token, useConfig } from '../config.ts'

/** The tokens of the wallet's chain. */
export function useTokens(): readonly Token[] {
  const { tokens, chainId } = useConfig()
  return useMemo(() => (tokens ?? []).filter((token) => token.chainId === chainId), [tokens, chainId])
}
