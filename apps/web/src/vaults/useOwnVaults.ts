import { type UseVaultsReturnType, useVaults } from '@countersign/sdk/vaults'
import { useEffect } from 'react'

/** The vaults of the user; who is no longer signed in is sent to the sign-in, and where somebody else is, the page becomes theirs. */
export function useOwnVaults({ onSessionLost }: { onSessionLost: () => void }): UseVaultsReturnType {
  const vaults = useVaults()
  const isLost = vaults.error?.status === 401 || vaults.error?.code === 'wallet_changed'
  useEffect(() => {
    if (isLost) onSessionLost()
  }, [isLost, onSessionLost])
  return vaults
}
