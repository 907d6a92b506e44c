import { createPolicy, type Policy } from '@countersign/policy'
import {
  type AttestAddressResponse,
  attestAddressResponse,
  type OwnerOpening,
  type VaultInfo,
  vaultList,
} from '@countersign/protocol'
import { list, object } from '@countersign/protocol/schema'
import { createCall } from '../client/api.ts'
import type { Connection } from '../client/connection.ts'
import { createVaultError } from './errors.ts'
import { toPolicyHash, type Vault, vault } from './vault.ts'

type Caller = Pick<Connection, 'config'>

export type CreateVaultOptions = {
  /** Restores an existing vault with this address, even if the service has lost it and would not accept it as new. */
  address?: Vault['address'] | undefined
}

/** The slug of the address's proof, and what shows its owner to the people you give it to. The same each time. */
export type AttestAddressResult = { attestationSlug: string; owner: OwnerOpening }

/**
 * The user's vaults, oldest first.
 *
 * @example
 * const [vault] = await listVaults(client)
 */
export async function listVaults({ config }: Caller): Promise<Vault[]> {
  const { vaults } = await createCall(config)('GET /vaults', object({ vaults: list(vault) }))
  return vaults as Vault[]
}

/** The service's answer about one of the user's vaults, or undefined. */
export async function findVaultInfo({ config }: Caller, wallet: string): Promise<VaultInfo | undefined> {
  const { vaults } = await createCall(config)('GET /vaults', vaultList)
  return vaults.find(({ address }) => address === wallet)
}

/**
 * Creates a vault. Resolves once the service has read the policy back from IPFS. Rejects with `vault_mismatch` unless the answer has
 * exactly this policy, and the address if you pass one. Idempotent: the same policy is the same vault. Give the owner `toPolicyFile`.
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
  // Throws `vault_policy_malformed` before anything is sent.
  const canonicalPolicy = createPolicy(policy)
  const call = createCall(config)
  const created = (await call('POST /vaults', vault, { body: { policy: canonicalPolicy, address } })) as Vault
  const isOfAddress = address === undefined || created.address === address.toLowerCase()
  if (isOfAddress && created.policyHash === toPolicyHash(canonicalPolicy)) return created
  const details = `policy ${created.policyHash}, address ${created.address}`
  throw createVaultError('vault_mismatch', 'the service returned another vault', { details })
}

/**
 * Makes a public proof that the address belongs to the policy. Call it before you fund the vault.
 *
 * @example
 * const { attestationSlug } = await attestVault(client, vault)
 */
export async function attestVault(
  { config }: Caller,
  { address }: Pick<Vault, 'address'>,
): Promise<AttestAddressResult> {
  const call = createCall(config)
  return toAttestResult(await call('POST /vaults/:address/attest', attestAddressResponse, {}, { address }))
}

/**
 * Makes a public proof that the address of the user's own wallet is the service's.
 *
 * @example
 * const { attestationSlug } = await attestWallet(client)
 */
export async function attestWallet({ config }: Caller): Promise<AttestAddressResult> {
  return toAttestResult(await createCall(config)('POST /wallet/attest', attestAddressResponse))
}

function toAttestResult({ slug: attestationSlug, owner }: AttestAddressResponse): AttestAddressResult {
  return { attestationSlug, owner }
}
