'use client'

import type { Hex } from '@countersign/protocol'
import { useCallback, useState } from 'react'
import { createSignStore, type SignState } from '../client/createStore.ts'
import { walletNotReady } from '../client/errors.ts'
import type { SignMessageRequest, SignTypedDataRequest } from '../client/parseOffChain.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { useServiceContext, useStore } from './useService.ts'

type SignOffChainState = SignState<SignOffChainResult>

export type UseSignMessageReturnType = SignOffChainState & {
  signMessage: (request: SignMessageRequest) => Promise<SignOffChainResult>
}

export type UseSignTypedDataReturnType = SignOffChainState & {
  signTypedData: (request: SignTypedDataRequest) => Promise<SignOffChainResult>
}

type Returned = { signMessage: UseSignMessageReturnType; signTypedData: UseSignTypedDataReturnType }

/** The state of signing by one method of the client. */
function useSignOffChain<Method extends keyof Returned>(method: Method): Returned[Method] {
  const { client, store } = useServiceContext()
  const { wallet: shown } = useStore(store)
  const [signStore] = useState(createSignStore<{ address: Hex; result: SignOffChainResult }>)
  const { lastResult: last, ...state } = useStore(signStore)
  const sign = useCallback(
    async (request: never) => {
      const { result } = await signStore.run(async () => {
        // The wallet as it is now, which may be newer than the last render.
        const { wallet } = store.getSnapshot()
        if (wallet === null) throw walletNotReady()
        return { address: wallet.address, result: await client[method](request, { wallet }) }
      })
      return result
    },
    [client, store, signStore, method],
  )
  // Whoever holds such a signature can use it, so it is not shown beside another wallet, nor once its user has signed out.
  const lastResult = last && last.address === shown?.address ? last.result : null
  return { [method]: sign, ...state, lastResult } as unknown as Returned[Method]
}

/**
 * Signs a message (EIP-191) with the user's wallet. The opening is answered once: without it nobody can open the proof.
 *
 * @example
 * const { signMessage, pending, error, lastResult } = useSignMessage()
 * const { signature, opening } = await signMessage({ message: 'I agree.' })
 */
export function useSignMessage(): UseSignMessageReturnType {
  return useSignOffChain('signMessage')
}

/**
 * Signs typed data (EIP-712) with the user's wallet. The opening is answered once: without it nobody can open the proof.
 *
 * @example
 * const { signTypedData, pending, error, lastResult } = useSignTypedData()
 * const { signature, opening } = await signTypedData({ domain, types, primaryType: 'Order', message })
 */
export function useSignTypedData(): UseSignTypedDataReturnType {
  return useSignOffChain('signTypedData')
}
