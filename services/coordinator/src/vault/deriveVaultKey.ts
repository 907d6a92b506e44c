import { fromHex, type Hex, toAddress } from '@countersign/protocol'
import { invalidAnswer } from '../errors.ts'
import type { KeyEnclave } from '../ports.ts'
import type { StoredPolicy } from '../store/types.ts'

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
): Promise<{ address: Hex; kmsKeyId: string }> {
  const derived = await enclave.deriveVault({ sid, grant, policy: policy.text, ...(isKnown && { isKnown }) })
  const { address, keyId: kmsKeyId } = derived
  if (derived.policy !== policy.hash || toAddress(fromHex(derived.publicKey)) !== address) {
    throw invalidAnswer('vault')
  }
  return { address, kmsKeyId }
}
