import type { Approval } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { approve, type PasskeyCredential, type Prepared } from '@countersign/sdk/vaults'
import { useEffect, useRef, useState } from 'react'
import { toServiceError } from '../words/explainError.ts'
import { readVaultNotes } from './vaultNotes.ts'

type UseApproveReturnType = { ask: () => Promise<void>; isAsking: boolean; failure: ServiceError | null }

/**
 * Asks for a passkey on this device. The browser's prompt goes with the component that shows what is approved, and what it answers
 * afterwards counts for nothing: it would bring back what somebody has discarded.
 */
export function useApprove(prepared: Prepared, onApproval: (approval: Approval) => void): UseApproveReturnType {
  const [isAsking, setIsAsking] = useState(false)
  const [failure, setFailure] = useState<ServiceError | null>(null)
  // Of the last render: while somebody looks for a passkey, the approval of another one may have been pasted.
  const take = useRef(onApproval)
  take.current = onApproval
  const shown = useRef(new AbortController())
  useEffect(() => {
    const controller = new AbortController()
    shown.current = controller
    return () => controller.abort()
  }, [])

  async function ask() {
    if (isAsking) return
    setIsAsking(true)
    setFailure(null)
    const { signal } = shown.current
    try {
      const approval = await approve(prepared, { credentials: findCredentials(prepared), signal })
      if (!signal.aborted) take.current(approval)
    } catch (error) {
      setFailure(toServiceError(error))
    }
    setIsAsking(false)
  }
  return { ask, isAsking, failure }
}

/** Which passkeys to ask for: those made here, if they are all that the vault has. Otherwise the user chooses among all of this site. */
function findCredentials({ address, policy }: Prepared): readonly PasskeyCredential[] | undefined {
  const { passkeys } = readVaultNotes(address)
  return passkeys.length === policy.approvers.length ? passkeys : undefined
}
