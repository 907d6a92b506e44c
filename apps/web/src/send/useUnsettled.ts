import { isPlainObject, isPrefixedHex } from '@countersign/protocol'
import type { Hex, SignResult } from '@countersign/sdk'
import { useState, useSyncExternalStore } from 'react'
import { readStored, writeStored } from '../ui/stored.ts'
import { useSendSession } from './sendSession.ts'

const toKey = (address: string) => `countersign:unsettled:${address.toLowerCase()}`

/**
 * What a wallet or a vault has signed while nobody knows whether it was sent, and a way to note it; null for nothing. In the session, and
 * in the browser too: after a reload, too, the next payment could be a second one.
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
  const isHash = isPrefixedHex(txHash, 32) && txHash === txHash.toLowerCase()
  return isHash && typeof attestationSlug === 'string' ? { txHash, attestationSlug } : null
}
