import { assertPolicyForm, hashPolicy, type Policy, toPolicyBytes } from '@countersign/policy'
import { toCanonicalJson, toHex, type VaultInfo, vaultInfo } from '@countersign/protocol'
import { checked } from '@countersign/protocol/schema'
import { sha256, toBytes } from 'viem'

/** A wallet whose key follows from its rules: they never change, and who loses them loses the key. */
export type Vault = Omit<VaultInfo, 'policy'> & {
  /** `describePolicy` of `@countersign/policy` says it in words. */
  policy: Policy
}

/**
 * What the service says of a vault, with rules that have the form of rules, and with their hash and CID. That the address is the policy's,
 * only the proof of `attestVault` shows. Its keys are checked where it is used: a thief who had a session could have made a hundred vaults
 * with hundreds of keys, and checking all of them would hold up the page for a minute.
 */
export const vault = checked(vaultInfo, ({ policy, policyHash, policyCid }) => {
  if (!isPolicyForm(policy)) return false
  const bytes = toCanonicalJson(policy)
  return sha256(bytes) === `0x${policyHash}` && policyCid === toRawCid(bytes)
})

function isPolicyForm(value: unknown): boolean {
  try {
    assertPolicyForm(value)
    return true
  } catch {
    return false
  }
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

/** CIDv1, codec raw, sha2-256, in base32: the name of a block on IPFS. */
export function toRawCid(bytes: Uint8Array): string {
  return `b${toBase32(Uint8Array.of(0x01, 0x55, 0x12, 0x20, ...toBytes(sha256(bytes))))}`
}

function toBase32(bytes: Uint8Array): string {
  let text = ''
  let buffer = 0
  let bits = 0
  for (const byte of bytes) {
    buffer = (buffer << 8) | byte
    bits += 8
    for (; bits >= 5; bits -= 5) text += BASE32.charAt((buffer >> (bits - 5)) & 31)
    buffer &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + BASE32.charAt((buffer << (5 - bits)) & 31)
}

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
