import { assertPolicyForm, hashPolicy, type Policy, toPolicyBytes } from '@countersign/policy'
import { toCanonicalJson, toHex, type VaultInfo, vaultInfo } from '@countersign/protocol'
import { checked } from '@countersign/protocol/schema'
import { sha256, toBytes } from 'viem'

/** A wallet whose key derives from its rules. The rules never change, and without them the key is lost. */
export type Vault = Omit<VaultInfo, 'policy'> & {
  /** `describePolicy` of `@countersign/policy` says it in words. */
  policy: Policy
}

/**
 * The service's answer about a vault, with checked form, hash and CID of the rules. Only the proof of `attestVault` shows that the address
 * belongs to the rules. Keys in rules are checked when the vault is used: a thief with the session could have created a hundred vaults with
 * hundreds of keys, and checking all of them would block the page for a minute.
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

/** 32 bytes in hex. The enclave derives the vault's key from it. */
export function toPolicyHash(value: Policy): string {
  return toHex(hashPolicy(value))
}

/**
 * The file that the owner must store: the policy's bytes as they are hashed. Without them, the vault's key can't be derived.
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
