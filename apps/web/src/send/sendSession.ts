import { isPlainObject, isPrefixedHex } from '@countersign/protocol'
import type { Hex, ServiceError, SignResult } from '@countersign/sdk'
import { useEffect } from 'react'
import { readStored, writeStored } from '../ui/stored.ts'
import type { PendingPayment } from '../vaults/pendingPayment.ts'
import { type SessionKind, useSession } from '../wallet/session.ts'
import type { Draft } from './prepareDraft.ts'
import type { ShownPayment } from './tellDraft.ts'

/** A wallet confirms a draft; a vault's payment may have to wait for approvals. */
export type Step =
  | { name: 'form' | 'checking' | 'signing' }
  | { name: 'confirm'; draft: Draft }
  | { name: 'pending'; pending: PendingPayment }
  | { name: 'sent'; draft: ShownPayment; result: SignResult }

export type SendState = {
  step: Step
  failure: ServiceError | null
  /** Signed, and nobody knows whether it was sent: the next payment could be a second one. */
  unsettled: SignResult | null
  /** Whether the browser has it: then it counts for as long as it is there, since another tab may take it away. */
  isKept: boolean
}

/**
 * How far the payment of a wallet or a vault is. A tab that ends between signature and broadcast leaves a public signature behind, and
 * nothing sent.
 */
export const SENDING: SessionKind<SendState> = {
  initial: { step: { name: 'form' }, failure: null, unsettled: null, isKept: false },
  isAtRisk: ({ step }) => step.name === 'signing',
}

const toKey = (address: string) => `countersign:unsettled:${address.toLowerCase()}`

export type Unsettled = {
  /** What is to be shown: what was signed while nobody knows whether it was sent; null for nothing, or where the page tells of it anyway. */
  shown: SignResult | null
  noteUnsettled: (signed: SignResult) => void
  /** Takes away what the page showed when this function was made, and nothing that was noted since. */
  forgetUnsettled: () => void
}

/**
 * What a wallet or a vault has signed while nobody knows whether it was sent. In the browser, for all tabs and after a reload: the
 * next payment could be a second one. In the session too, where the browser keeps nothing.
 */
export function useUnsettled(address: Hex): Unsettled {
  const [{ step, failure, unsettled }, session] = useSession(SENDING, address)
  const isTold = failure?.signed?.txHash === unsettled?.txHash || step.name === 'sent'
  useEffect(() => {
    const read = () => {
      const kept = readUnsettled(address)
      if (kept !== null || session.get().isKept) session.set({ unsettled: kept, isKept: true })
    }
    read()
    const follow = ({ key }: StorageEvent) => {
      if (key === toKey(address)) read()
    }
    window.addEventListener('storage', follow)
    return () => window.removeEventListener('storage', follow)
  }, [session, address])
  return {
    shown: isTold ? null : unsettled,
    noteUnsettled(signed) {
      writeStored(localStorage, toKey(address), signed)
      session.set({ unsettled: signed, isKept: readUnsettled(address)?.txHash === signed.txHash })
    },
    forgetUnsettled() {
      if (readUnsettled(address)?.txHash === unsettled?.txHash) writeStored(localStorage, toKey(address), undefined)
      session.set({ unsettled: readUnsettled(address) })
    },
  }
}

function readUnsettled(address: string): SignResult | null {
  const value = readStored(localStorage, toKey(address))
  if (!isPlainObject(value)) return null
  const { txHash, attestationSlug } = value
  const isHash = isPrefixedHex(txHash, 32) && txHash === txHash.toLowerCase()
  return isHash && typeof attestationSlug === 'string' ? { txHash, attestationSlug } : null
}
