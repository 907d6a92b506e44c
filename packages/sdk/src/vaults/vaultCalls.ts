import { createPolicy, type Policy } from '@countersign/policy'
import { slugResponse, type VaultInfo, vaultList } from '@countersign/protocol'
import { list, object } from '@countersign/protocol/schema'
import { createCall } from '../client/api.ts'
import type { Connection } from '../client/connection.ts'
import { createVaultError } from './errors.ts'
import { toPolicyHash, type Vault, vault } from './vault.ts'

/** What these calls use of a `ServiceClient`. */
type Caller = Pick<Connection, 'config'>

export type CreateVaultOptions = {
  /** Of a vault that was made before: it comes back, also where the service has lost it and would make no such new one. */
  address?: Vault['address'] | undefined
}

/** What attesting an address answers: the slug of its proof, the same each time. */
export type AttestAddressResult = { attestationSlug: string }

/**
 * The vaults of the user, in the order of their making.
 *
 * @example
 * const [vault] = await listVaults(client)
 */
export async function listVaults({ config }: Caller): Promise<Vault[]> {
  const { vaults } = await createCall(config.apiBaseUrl)('GET /vaults', object({ vaults: list(vault) }))
  return vaults as Vault[]
}

/** What the service says of a vault of the user; undefined where there is no such vault. */
export async function findVaultInfo({ config }: Caller, wallet: string): Promise<VaultInfo | undefined> {
  const { vaults } = await createCall(config.apiBaseUrl)('GET /vaults', vaultList)
  return vaults.find(({ address }) => address === wallet)
}

/**
 * Makes a vault. It resolves only once the service has read the policy back from IPFS, and rejects with `vault_mismatch` unless the
 * answer is of exactly this policy, and of the address if one is given. Idempotent: the same policy is the same vault. Give its owner
 * `toPolicyFile` of it.
 *
 * @example
 * const { approver } = await createPasskey({ name: 'ada@example.com' })
 * const vault = await createVault(client, { version: 1, log: null, approvers: [approver], rules })
 */
export async function createVault(
  { config }: Caller,
  policy: Policy,
  { address }: CreateVaultOptions = {},
): Promise<Vault> {
  // In its one spelling, or `vault_policy_malformed`: nothing was sent then.
  const wanted = createPolicy(policy)
  const call = createCall(config.apiBaseUrl)
  const made = (await call('POST /vaults', vault, { body: { policy: wanted, address } })) as Vault
  const isOfAddress = address === undefined || made.address === address.toLowerCase()
  if (isOfAddress && made.policyHash === toPolicyHash(wanted)) return made
  const details = `the answer is of policy ${made.policyHash}, at ${made.address}`
  throw createVaultError('vault_mismatch', 'the service answered another vault than that of the policy', { details })
}

/**
 * Has a public proof made that this address is that of this policy, before the first coin is sent to it.
 *
 * @example
 * const { attestationSlug } = await attestVault(client, vault)
 */
export async function attestVault(
  { config }: Caller,
  { address }: Pick<Vault, 'address'>,
): Promise<AttestAddressResult> {
  const call = createCall(config.apiBaseUrl)
  const { slug } = await call('POST /vaults/:address/attest', slugResponse, {}, { address })
  return { attestationSlug: slug }
}

/** The same for the user's own wallet, which has no policy. */
export async function attestWallet({ config }: Caller): Promise<AttestAddressResult> {
  const { slug } = await createCall(config.apiBaseUrl)('POST /wallet/attest', slugResponse)
  return { attestationSlug: slug }
}
