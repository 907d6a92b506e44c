import { type Approval, assertApprovals } from '@countersign/policy'
import { isPlainObject, ServiceError } from '@countersign/protocol'
import { type Prepared, parsePrepared } from '@countersign/sdk/vaults'
import { readStored, writeStored } from '../ui/stored.ts'

export type PreparedPayment = Prepared & { kind: 'transaction' }

/** A payment that waits for its approvals, or to be sent. */
export type PendingPayment = { prepared: PreparedPayment; approvals: readonly Approval[] }

const toKey = (address: string) => `countersign:payment:${address.toLowerCase()}`

/**
 * The payment that waits at a vault. It is kept in the browser, so that it is there again after a sign-in, or when somebody else has
 * approved. Whatever cannot be read, or is of another vault, is nothing.
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

/** Undefined: nothing waits any more. */
export function writePending(address: string, pending: PendingPayment | undefined): void {
  writeStored(localStorage, toKey(address), pending)
}
