'use client'

import { useCallback, useMemo } from 'react'
import { walletNotReady } from '../client/errors.ts'
import type { SignMessageRequest, SignTypedDataRequest } from '../client/parseOffChain.ts'
import type { SignOffChainResult } from '../client/signOffChain.ts'
import { createSignStore, type SignState } from '../client/signStore.ts'
import { useServiceContext, useStore } from './ServiceContext.ts'

export type SignOffChainState = SignState<SignOffChainResult>

type Requests = { signMessage: SignMessageRequest; signTypedData: SignTypedDataRequest }

/** What `useSignMessage` and `useSignTypedData` share: the state of signing by one method of the client. */
export function useSignOffChain<Method extends keyof Requests>(
  method: Method,
): SignOffChainState & { sign: (request: Requests[Method]) => Promise<SignOffChainResult> } {
  const { client, store } = useServiceContext()
  const address = useStore(store).wallet?.address
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever holds such a signature can use it, so it is shown beside no other wallet
  const signStore = useMemo(() => createSignStore<SignOffChainResult>(), [address])
  const state = useStore(signStore)
  const sign = useCallback(
    (request: Requests[Method]) =>
      signStore.run(async () => {
        // The wallet as it is now, which may be newer than the last render.
        const { wallet } = store.getSnapshot()
        if (wallet === null) throw walletNotReady()
        return client[method](request as never, { wallet })
      }),
    [client, store, signStore, method],
  )
  return { sign, ...state }
}
