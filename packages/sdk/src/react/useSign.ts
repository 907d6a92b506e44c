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

/** Signs with the store's current wallet, which may be newer than the last render's. */
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

type SignOffChainHooks = { signMessage: UseSignMessageReturnType; signTypedData: UseSignTypedDataReturnType }

function useSignOffChain<Method extends keyof SignOffChainHooks>(method: Method): SignOffChainHooks[Method] {
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
  // Anyone with such a signature can use it, so hide it after a sign-out or a change of wallet.
  const lastResult = last && last.address === shown?.address ? last.result : null
  return { [method]: sign, ...state, lastResult } as unknown as SignOffChainHooks[Method]
}

/**
 * Signs a message (EIP-191) with the user's wallet. Store the opening: it is the only way to show what was signed.
 *
 * @example
 * const { signMessage, pending, error, lastResult } = useSignMessage()
 * const { signature, opening } = await signMessage({ message: 'I agree.' })
 */
export function useSignMessage(): UseSignMessageReturnType {
  return useSignOffChain('signMessage')
}

/**
 * Signs typed data (EIP-712) with the user's wallet. Store the opening: it is the only way to show what was signed.
 *
 * @example
 * const { signTypedData, pending, error, lastResult } = useSignTypedData()
 * const { signature, opening } = await signTypedData({ domain, types, primaryType: 'Order', message })
 */
export function useSignTypedData(): UseSignTypedDataReturnType {
  return useSignOffChain('signTypedData')
}
