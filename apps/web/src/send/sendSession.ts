import { isPlainObject, isPrefixedHex } from '@countersign/protocol'
import type { Hex, ServiceError, SignResult } from '@countersign/sdk'
import { useEffect } from 'react'
import { readStored, writeStored } from '../ui/stored.ts'
import type { PendingPayment } from '../vaults/pendingPayment.ts'
import { type SessionKind, useSession } from '../wallet/session.ts'
import type { Draft } from './prepareDraft.ts'
import type { ShownPayment } from './shownPayment.ts'

/** Wallets confirm a draft. Vault payments may wait for approvals. */
export type Step =
  | { name: 'form' | 'checking' | 'signing' }
  | { name: 'confirm'; draft: Draft }
  | { name: 'pending'; pending: PendingPayment }
  | { name: 'sent'; draft: ShownPayment; result: SignResult }

export type SendState = {
  step: Step
  failure: ServiceError | null
  /** A signed payment with an unknown outcome. The user might pay it twice. */
  unsettled: SignResult | null
  /** Whether the browser stores it. If so, the stored value decides, because another tab may remove it. */
  isStored: boolean
}

/** The state of a payment. A tab that closes between signing and sending leaves a public signature and no transaction. */
export const SENDING: SessionKind<SendState> = {
  initial: { step: { name: 'form' }, failure: null, unsettled: null, isStored: false },
  isAtRisk: ({ step }) => step.name === 'signing',
}

const toKey = (address: string) => `countersign:unsettled:${address.toLowerCase()}`

export type Unsettled = {
  /** The payment to show. Null if there is none, or if the page already shows it. */
  shown: SignResult | null
  noteUnsettled: (signed: SignResult) => void
  /** Removes only the payment that was shown when this function was created. */
  forgetUnsettled: () => void
}

/**
 * Tracks a signed payment with an unknown outcome. It's stored in the browser, for all tabs and reloads, and in the session in case the
 * browser stores nothing.
 */
export function useUnsettled(address: Hex): Unsettled {
  const [{ step, failure, unsettled }, session] = useSession(SENDING, address)
  const isShown = failure?.signed?.txHash === unsettled?.txHash || step.name === 'sent'
  useEffect(() => {
    const read = () => {
      const kept = readUnsettled(address)
      if (kept !== null || session.get().isStored) session.set({ unsettled: kept, isStored: true })
    }
    read()
    const follow = ({ key }: StorageEvent) => {
      if (key === toKey(address)) read()
    }
    window.addEventListener('storage', follow)
    return () => window.removeEventListener('storage', follow)
  }, [session, address])
  return {
    shown: isShown ? null : unsettled,
    noteUnsettled(signed) {
      writeStored(localStorage, toKey(address), signed)
      session.set({ unsettled: signed, isStored: readUnsettled(address)?.txHash === signed.txHash })
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
