'use client'

import type { SignRequest, SignResult, WalletInfo } from '@countersign/protocol'
import { useCallback, useState } from 'react'
import { createSignStore, type SignState } from '../client/createStore.ts'
import { walletNotReady } from '../client/errors.ts'
import type { SignMessageRequest, SignTypedDataRequest } from '../client/parseOffChain.ts'
import { parseSignRequest } from '../client/parseSignRequest.ts'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { signAndSend } from '../client/signAndSend.ts'
import type { SignOffChainResult } from '../client/verifyOffChain.ts'
import { useServiceContext, useStore } from './useService.ts'

/** The state of one place that signs, and how to sign with the wallet as it is then, which may be newer than the last render. */
function useSigning<Result>() {
  const { client, store } = useServiceContext()
  const [signStore] = useState(createSignStore<Result>)
  const run = useCallback(
    (sign: (client: ServiceClient, wallet: WalletInfo) => Promise<Result>) =>
      signStore.run(async () => {
        const { wallet } = store.getSnapshot()
        if (wallet === null) throw walletNotReady()
        return sign(client, wallet)
      }),
    [client, store, signStore],
  )
  return { run, state: useStore(signStore) }
}

export type UseSignReturnType = SignState & { signAndSend: (request: SignRequest) => Promise<SignResult> }

/**
 * Signs a transaction with the user's wallet and broadcasts it.
 *
 * @example
 * const { signAndSend, pending, error, lastResult } = useSign()
 * const { txHash, attestationSlug } = await signAndSend({ to: '0x…', value: '0.01' })
 */
export function useSign(): UseSignReturnType {
  const { run, state } = useSigning<SignResult>()
  const send = useCallback(
    (request: SignRequest) =>
      run(async (client, wallet) => signAndSend(client, { wallet, call: parseSignRequest(request) })),
    [run],
  )
  return { signAndSend: send, ...state }
}

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
  const { wallet: shown } = useStore(useServiceContext().store)
  const { run, state } = useSigning<{ address: string; result: SignOffChainResult }>()
  const sign = useCallback(
    async (request: never) => {
      const signed = await run(async (client, wallet) => ({
        address: wallet.address,
        result: await client[method](request, { wallet }),
      }))
      return signed.result
    },
    [run, method],
  )
  const { lastResult: last } = state
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
