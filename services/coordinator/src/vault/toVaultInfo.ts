import type { VaultInfo } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import type { Vault } from '../store/types.ts'

/** The public part of a vault: never its key id or its user. */
export function toVaultInfo({ address, createdAt, policy: { hash, text } }: Vault): VaultInfo {
  return {
    address,
    policyHash: hash,
    policyCid: toCid(new TextEncoder().encode(text)),
    policy: JSON.parse(text),
    createdAt: new Date(createdAt).toISOString(),
  }
}
