import { toPolicyBytes } from '@countersign/policy'
import type { Vault } from '@countersign/sdk/vaults'

/** The parameters of `createAgent` of `@countersign/sdk/agent`, as JSON. Without a key, the program adds its own. */
export function toAgentSettings(
  { address, policy }: Pick<Vault, 'address' | 'policy'>,
  { apiBaseUrl, key }: { apiBaseUrl: string; key: string | undefined },
): string {
  const vault = { address, policy: new TextDecoder().decode(toPolicyBytes(policy)) }
  return JSON.stringify({ apiBaseUrl, vault, key }, null, 2)
}
