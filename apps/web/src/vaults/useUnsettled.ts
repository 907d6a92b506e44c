import { isLowerPrefixedHex, isPlainObject } from '@countersign/protocol'
import type { Hex, SignResult } from '@countersign/sdk'
import { useState, useSyncExternalStore } from 'react'
import { useSendSession } from '../send/sendSession.ts'
import { readStored, writeStored } from './vaultNotes.ts'

const toKey = (address: string) => `countersign:unsettled:${address.toLowerCase()}`

/**
 * What a vault has signed while nobody knows whether it was sent, and a way to note it; null for nothing. In the session, as that of a
 * wallet, and in the browser too, as the payment that waits: that one can be changed, or be there again after a reload.
 */
export function useUnsettled(address: Hex): [SignResult | null, (signed: SignResult | null) => void] {
  const session = useSendSession(address)
  const { unsettled } = useSyncExternalStore(session.subscribe, session.get)
  const [stored, setStored] = useState(() => readUnsettled(address))
  function note(signed: SignResult | null) {
    writeStored(localStorage, toKey(address), signed ?? undefined)
    setStored(signed)
    session.set({ unsettled: signed })
  }
  return [unsettled ?? stored, note]
}

function readUnsettled(address: string): SignResult | null {
  const value = readStored(localStorage, toKey(address))
  if (!isPlainObject(value)) return null
  const { txHash, attestationSlug } = value
  return isLowerPrefixedHex(txHash, 32) && typeof attestationSlug === 'string' ? { txHash, attestationSlug } : null
}
