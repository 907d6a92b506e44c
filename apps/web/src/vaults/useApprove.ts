import type { Approval } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { approve, type PasskeyCredential, type Prepared } from '@countersign/sdk/vaults'
import { useEffect, useRef } from 'react'
import { useAction } from '../ui/useAction.ts'
import { readVaultNotes } from './vaultNotes.ts'

type UseApproveReturnType = { ask: () => Promise<void>; isAsking: boolean; failure: ServiceError | null }

/**
 * Asks for a passkey on this device. The browser's prompt goes with the component that shows what is approved, and what it answers
 * afterwards counts for nothing: it would bring back what somebody has discarded.
 */
export function useApprove(prepared: Prepared, onApproval: (approval: Approval) => void): UseApproveReturnType {
  const { run, isRunning, failure } = useAction()
  // Of the last render: while somebody looks for a passkey, the approval of another one may have been pasted.
  const take = useRef(onApproval)
  take.current = onApproval
  const shown = useRef(new AbortController())
  useEffect(() => {
    const controller = new AbortController()
    shown.current = controller
    return () => controller.abort()
  }, [])

  const ask = () =>
    run(async () => {
      const { signal } = shown.current
      const approval = await approve(prepared, { credentials: findCredentials(prepared), signal })
      if (!signal.aborted) take.current(approval)
    })
  return { ask, isAsking: isRunning, failure }
}

/** Which passkeys to ask for: those made here, if they are all that the vault has. Otherwise the user chooses among all of this site. */
function findCredentials({ address, policy }: Prepared): readonly PasskeyCredential[] | undefined {
  const { passkeys } = readVaultNotes(address)
  return passkeys.length === policy.approvers.length ? passkeys : undefined
}
