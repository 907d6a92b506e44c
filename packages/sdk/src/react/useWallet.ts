'use client'

import { type ServiceContextValue, useService } from './useService.ts'

/** `useService().login` can name a provider. */
export type UseWalletReturnType = Pick<
  Omit<ServiceContextValue, 'login'> & { login: () => void },
  'user' | 'wallet' | 'ready' | 'login' | 'logout' | 'refresh'
>

/**
 * The user, the wallet, and how to sign in and out.
 *
 * @example
 * const { user, wallet, ready, login } = useWallet()
 */
export function useWallet(): UseWalletReturnType {
  const { client: _client, error: _error, ...value } = useService()
  return value
}
