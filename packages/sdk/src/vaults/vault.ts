import { assertPolicy, hashPolicy, type Policy, toPolicyBytes } from '@countersign/policy'
import { toHex, type VaultInfo } from '@countersign/protocol'
import { address, members, type Parse, string, time } from '../client/parseResources.ts'
import { toRawCid } from '../client/toRawCid.ts'

/** A wallet whose key follows from its rules: they never change, and who loses them loses the key. */
export type Vault = Omit<VaultInfo, 'policy'> & {
  /** `describePolicy` of `@countersign/policy` says it in words. */
  policy: Policy
}

const policy: Parse<Policy> = (value) => {
  try {
    assertPolicy(value)
    return value
  } catch {
    return undefined
  }
}

const parseMembers = members<Vault>({ address, policyHash: string, policyCid: string, policy, createdAt: time })

/**
 * What the service says of a vault; undefined unless the policy is one, and hash and CID are those of the policy. That the address is
 * the policy's, only the proof of `attestVault` shows.
 */
export function parseVault(body: unknown): Vault | undefined {
  const vault = parseMembers(body)
  if (vault?.policyHash !== (vault && toPolicyHash(vault.policy))) return undefined
  return vault?.policyCid === (vault && toRawCid(toPolicyBytes(vault.policy))) ? vault : undefined
}

/** 32 bytes, hex: what the key of a vault is derived from. */
export function toPolicyHash(value: Policy): string {
  return toHex(hashPolicy(value))
}

/**
 * What the owner keeps: the policy's bytes, exactly as they are hashed. The key of the vault cannot be derived without them.
 *
 * @example
 * const { name, bytes } = toPolicyFile(vault)
 * link.href = URL.createObjectURL(new Blob([bytes], { type: 'application/json' }))
 */
export function toPolicyFile(vault: Pick<Vault, 'address' | 'policy'>): {
  name: string
  bytes: Uint8Array<ArrayBuffer>
} {
  return { name: `vault-${vault.address}.json`, bytes: toPolicyBytes(vault.policy) }
}
