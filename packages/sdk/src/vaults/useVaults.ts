'use client'

import type { Policy } from '@countersign/policy'
import { useCallback, useEffect, useMemo } from 'react'
import { useServiceContext, useStore } from '../react/useService.ts'
import type { Vault } from './vault.ts'
import { type AttestAddressResult, attestVault, type CreateVaultOptions } from './vaultCalls.ts'
import { createVaultsStore, type VaultsState } from './vaultsStore.ts'

export type UseVaultsReturnType = VaultsState & {
  /** `createVault`; the new vault is in the list afterwards. */
  create: (policy: Policy, options?: CreateVaultOptions) => Promise<Vault>
  /** `attestVault`: follow the proof with `useAttestation`. */
  attest: (vault: Pick<Vault, 'address'>) => Promise<AttestAddressResult>
  /** Reads the list again; never rejects. */
  refresh: () => Promise<void>
}

/**
 * The vaults of the user who is signed in.
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
