'use client'

import type { SignMessageRequest } from '../client/parseOffChain.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { type SignOffChainState, useSignOffChain } from './useSignOffChain.ts'

export type UseSignMessageReturnType = SignOffChainState & {
  signMessage: (request: SignMessageRequest) => Promise<SignOffChainResult>
}

/**
 * Signs a message (EIP-191) with the user's wallet. The opening is answered once: without it nobody can open the proof.
 *
 * @example
 * const { signMessage, pending, error, lastResult } = useSignMessage()
 * const { signature, opening } = await signMessage({ message: 'I agree.' })
 */
export function useSignMessage(): UseSignMessageReturnType {
  const { sign, ...state } = useSignOffChain('signMessage')
  return { signMessage: sign, ...state }
}
