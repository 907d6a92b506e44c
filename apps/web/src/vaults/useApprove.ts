import type { Approval } from '@countersign/policy'
import type { ServiceError } from '@countersign/sdk'
import { approve, type Prepared } from '@countersign/sdk/vaults'
import { useEffect, useRef, useState } from 'react'
import { toServiceError } from '../words/toServiceError.ts'
import { findCredentials } from './findCredentials.ts'

export type UseApproveReturnType = { ask: () => Promise<void>; isAsking: boolean; failure: ServiceError | null }

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
