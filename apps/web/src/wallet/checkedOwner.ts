import { isPlainObject } from '@countersign/protocol'
import type { Hex } from '@countersign/sdk'
import { readStored, writeStored } from '../ui/stored.ts'

/** An address for funds. `policyHash` is a vault's. */
export type Deposit = { address: Hex; policyHash?: string | undefined }

/**
 * The owner in a verified proof. `email` is null if the identity provider doesn't confirm it; the sentence then has the subject. `keyId` is
 * the one of the address.
 */
export type CheckedOwner = { email: string | null; sentence: string; slug: string; keyId?: string | undefined }

type CheckedAddress = { apiBaseUrl: string; deposit: Deposit; email: string }

function toKey({ apiBaseUrl, deposit: { address, policyHash = '' }, email }: CheckedAddress): string {
  return `countersign:owner:${apiBaseUrl}:${address}:${policyHash}:${email}`
}

/** The result of an earlier check in this browser, of the same address, rules and e-mail address. */
export function readCheckedOwner(checked: CheckedAddress): CheckedOwner | undefined {
  const owner = readStored(localStorage, toKey(checked))
  return isPlainObject(owner) ? (owner as CheckedOwner) : undefined
}

export function writeCheckedOwner(checked: CheckedAddress, owner: CheckedOwner): void {
  writeStored(localStorage, toKey(checked), owner)
}
