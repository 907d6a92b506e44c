import type { Approval } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { approve, type PasskeyCredential, type Prepared } from '@countersign/sdk/vaults'
import { useEffect, useRef } from 'react'
import { useAction } from '../ui/useAction.ts'
import { readVaultNotes } from './vaultNotes.ts'

type UseApproveReturnType = { ask: () => Promise<void>; isAsking: boolean; failure: ServiceError | null }

/**
 * Asks for a passkey on this device. The prompt closes with the component. Later results are ignored, because they could bring back a
 * discarded payment.
 */
export function useApprove(prepared: Prepared, onApproval: (approval: Approval) => void): UseApproveReturnType {
  const { run, isRunning, failure } = useAction()
  // The latest callback, because an approval may be pasted during the prompt.
  const latest = useRef(onApproval)
  latest.current = onApproval
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
      if (!signal.aborted) latest.current(approval)
    })
  return { ask, isAsking: isRunning, failure }
}

/** The passkeys created here, if the vault has no others. Otherwise the user chooses from all passkeys of this site. */
function findCredentials({ address, policy }: Prepared): readonly PasskeyCredential[] | undefined {
  const { passkeys } = readVaultNotes(address)
  const { length } = policy.approvers.filter(({ type }) => type === 'passkey')
  return passkeys.length === length ? passkeys : undefined
}
