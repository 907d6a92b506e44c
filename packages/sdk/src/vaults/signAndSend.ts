import type { SignRequest, SignResult } from '@countersign/protocol'
import type { ServiceClient } from '../client/ServiceClient.ts'
import { toVaultClient } from './toVaultClient.ts'
import type { Vault } from './vault.ts'

/** A `SignRequest`, and the vault that is to sign it. */
export type VaultSignRequest = SignRequest & { wallet: Vault }

/**
 * `client.signAndSend` by a vault, for what its rules allow without approvals. Rejects with `approvals_missing` or `policy_refused` before
 * anything is signed.
 *
 * @example
 * const { txHash, attestationSlug } = await signAndSend(client, { to: '0x…', value: '0.01', wallet: vault })
 */
export async function signAndSend(
  client: ServiceClient,
  { wallet, ...request }: VaultSignRequest,
): Promise<SignResult> {
  return toVaultClient(client, wallet).signAndSend(request)
}
