'use client'

import type { Hex } from '@countersign/protocol'
import { useCallback, useState } from 'react'
import { walletNotReady } from '../client/errors.ts'
import type { SignMessageRequest, SignTypedDataRequest } from '../client/parseOffChain.ts'
import { createSignStore, type SignState } from '../client/signStore.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { useServiceContext, useStore } from './ServiceContext.ts'

export type SignOffChainState = SignState<SignOffChainResult>

type Requests = { signMessage: SignMessageRequest; signTypedData: SignTypedDataRequest }

/** What `useSignMessage` and `useSignTypedData` share: the state of signing by one method of the client. */
export function useSignOffChain<Method extends keyof Requests>(
  method: Method,
): SignOffChainState & { sign: (request: Requests[Method]) => Promise<SignOffChainResult> } {
  const { client, store } = useServiceContext()
  const { wallet: shown } = useStore(store)
  const [signStore] = useState(createSignStore<{ address: Hex; result: SignOffChainResult }>)
  const { pending, error, lastResult: last } = useStore(signStore)
  const sign = useCallback(
    async (request: Requests[Method]) => {
      const { result } = await signStore.run(async () => {
        // The wallet as it is now, which may be newer than the last render.
        const { wallet } = store.getSnapshot()
        if (wallet === null) throw walletNotReady()
        return { address: wallet.address, result: await client[method](request as never, { wallet }) }
      })
      return result
    },
    [client, store, signStore, method],
  )
  // Whoever holds such a signature can use it, so it is not shown beside another wallet, nor once its user has signed out.
  return { sign, pending, error, lastResult: last && last.address === shown?.address ? last.result : null }
}
