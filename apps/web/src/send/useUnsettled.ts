import { isPlainObject, isPrefixedHex } from '@countersign/protocol'
import type { Hex, SignResult } from '@countersign/sdk'
import { useEffect, useSyncExternalStore } from 'react'
import { readStored, writeStored } from '../ui/stored.ts'
import { useSendSession } from './sendSession.ts'

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
  const session = useSendSession(address)
  const { step, failure, unsettled } = useSyncExternalStore(session.subscribe, session.get)
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
