'use client'

import type { SignRequest, SignResult } from '@countersign/protocol'
import { useCallback, useState } from 'react'
import { createSignStore, type SignState } from '../client/createStore.ts'
import { walletNotReady } from '../client/errors.ts'
import { parseSignRequest } from '../client/parseSignRequest.ts'
import { signAndSend } from '../client/signAndSend.ts'
import { useServiceContext, useStore } from './useService.ts'

export type UseSignReturnType = SignState & { signAndSend: (request: SignRequest) => Promise<SignResult> }

/**
 * Signs a transaction with the user's wallet and broadcasts it.
 *
 * @example
 * const { signAndSend, pending, error, lastResult } = useSign()
 * const { txHash, attestationSlug } = await signAndSend({ to: '0x…', value: '0.01' })
 */
export function useSign(): UseSignReturnType {
  const { client, store } = useServiceContext()
  const [signStore] = useState(createSignStore<SignResult>)
  const state = useStore(signStore)
  const send = useCallback(
    (request: SignRequest) =>
      signStore.run(async () => {
        // The wallet as it is now, which may be newer than the last render.
        const { wallet } = store.getSnapshot()
        if (wallet === null) throw walletNotReady()
        return signAndSend(client, { wallet, call: parseSignRequest(request) })
      }),
    [client, store, signStore],
  )
  return { signAndSend: send, ...state }
}
