import { type Approval, assertApprovals } from '@countersign/policy'
import { isPlainObject, ServiceError } from '@countersign/protocol'
import { type Prepared, parsePrepared } from '@countersign/sdk/vaults'
import { readStored, writeStored } from '../ui/stored.ts'

export type PreparedPayment = Prepared & { kind: 'transaction' }

/** A payment that waits for approvals or for sending. */
export type PendingPayment = { prepared: PreparedPayment; approvals: readonly Approval[] }

const toKey = (address: string) => `countersign:payment:${address.toLowerCase()}`

/**
 * Reads a vault's pending payment. It's stored in the browser, so it survives a sign-in and waits for approvals from other devices.
 * Returns undefined if it's malformed or belongs to another vault.
 */
export function readPending(address: string): PendingPayment | undefined {
  const value = readStored(localStorage, toKey(address))
  if (!isPlainObject(value)) return undefined
  try {
    const prepared = parsePrepared(value.prepared)
    const { approvals } = value
    assertApprovals(approvals)
    const isOurs = prepared.kind === 'transaction' && prepared.address === address.toLowerCase()
    return isOurs ? { prepared, approvals } : undefined
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}

/** Undefined removes it. */
export function writePending(address: string, pending: PendingPayment | undefined): void {
  writeStored(localStorage, toKey(address), pending)
}
