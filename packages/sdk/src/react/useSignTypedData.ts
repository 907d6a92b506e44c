'use client'

import type { SignTypedDataRequest } from '../client/parseOffChain.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { type SignOffChainState, useSignOffChain } from './useSignOffChain.ts'

export type UseSignTypedDataReturnType = SignOffChainState & {
  signTypedData: (request: SignTypedDataRequest) => Promise<SignOffChainResult>
}

/**
 * Signs typed data (EIP-712) with the user's wallet. The opening is answered once: without it nobody can open the proof.
 *
 * @example
 * const { signTypedData, pending, error, lastResult } = useSignTypedData()
 * const { signature, opening } = await signTypedData({ domain, types, primaryType: 'Order', message })
 */
export function useSignTypedData(): UseSignTypedDataReturnType {
  const { sign, ...state } = useSignOffChain('signTypedData')
  return { signTypedData: sign, ...state }
}
