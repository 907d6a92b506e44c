import { fromHex, toAddress } from '@countersign/protocol'
import { invalidAnswer, vaultKeyChanged } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { StoredPolicy, Vault } from '../store/vaults.ts'

type VaultKey = Pick<Vault, 'address' | 'kmsKeyId'>

type DeriveVaultKeyParameters = {
  sid: string
  grant: string
  policy: StoredPolicy
  /** A vault that exists has its key, whatever the enclave would say of its rules today. */
  isKnown: boolean
}

/** What the enclave derives for the user of the session. Throws `invalid_policy` where no such vault may be made. */
export async function deriveVaultKey(
  enclave: Pick<KeyEnclave, 'deriveVault'>,
  { sid, grant, policy, isKnown }: DeriveVaultKeyParameters,
): Promise<VaultKey> {
  const derived = await enclave.deriveVault({ sid, grant, policy: policy.text, ...(isKnown && { isKnown }) })
  const { address, keyId: kmsKeyId } = derived
  if (derived.policy !== policy.hash || toAddress(fromHex(derived.publicKey)) !== address) {
    throw invalidAnswer('vault')
  }
  return { address, kmsKeyId }
}

/** People pay to the address of a vault, so what the database says of it must be what the enclave derives. Throws `key_binding_mismatch`. */
export function assertDerived({ address, kmsKeyId }: VaultKey, derived: VaultKey): void {
  if (address !== derived.address || kmsKeyId !== derived.kmsKeyId) throw vaultKeyChanged()
}
