'use client'

import type { Policy } from '@countersign/policy'
import { useCallback, useEffect, useMemo } from 'react'
import { useServiceContext, useStore } from '../react/useService.ts'
import type { Vault } from './vault.ts'
import { type AttestAddressResult, attestVault, type CreateVaultOptions } from './vaultCalls.ts'
import { createVaultsStore, type VaultsState } from './vaultsStore.ts'

export type UseVaultsReturnType = VaultsState & {
  /** Calls `createVault` and adds the vault to the list. */
  create: (policy: Policy, options?: CreateVaultOptions) => Promise<Vault>
  /** Calls `attestVault`. Follow the proof with `useAttestation`. */
  attest: (vault: Pick<Vault, 'address'>) => Promise<AttestAddressResult>
  /** Reads the list again. Never rejects. */
  refresh: () => Promise<void>
}

/**
 * The signed-in user's vaults.
 *
 * @example
 * const { vaults, loading, error, create, attest } = useVaults()
 */
export function useVaults(): UseVaultsReturnType {
  const { client, store } = useServiceContext()
  const { user } = useStore(store)
  const vaultsStore = useMemo(() => createVaultsStore(client), [client])
  const state = useStore(vaultsStore)
  const userId = user?.id ?? null
  useEffect(() => vaultsStore.show(userId), [vaultsStore, userId])
  const attest = useCallback((vault: Pick<Vault, 'address'>) => attestVault(client, vault), [client])
  return { ...state, create: vaultsStore.create, attest, refresh: vaultsStore.refresh }
}
