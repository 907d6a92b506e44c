import { createPolicy, type Policy } from '@countersign/policy'
import {
  type Approval,
  type AttestAddressResponse,
  attestAddressResponse,
  type Hex,
  isHex,
  type OwnerOpening,
  slug as slugSchema,
  type VaultBudgetInfo,
  type VaultInfo,
  vaultBudgetInfo,
  vaultList,
} from '@countersign/protocol'
import { list, object } from '@countersign/protocol/schema'
import { sha256 } from 'viem'
import { createCall } from '../client/api.ts'
import type { Connection } from '../client/connection.ts'
import { createError } from '../client/errors.ts'
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

/**
 * What the vault has spent, what each budget allows now, and the revoked keys.
 *
 * @example
 * const [daily] = (await getBudget(client, vault)).budgets
 */
export async function getBudget({ config }: Caller, { address }: Pick<Vault, 'address'>): Promise<VaultBudgetInfo> {
  return createCall(config)('GET /vaults/:address/budget', vaultBudgetInfo, {}, { address })
}

/**
 * Revokes an agent's key for ever, with the session of the owner or with `approvals` of `approveRevocation`. Resolves once the revocation is
 * final. Payments that the key approved before and that are not released by then are erased.
 *
 * @example
 * const { attestationSlug } = await revokeKey(client, vault, publicKey)
 */
export async function revokeKey(
  { config }: Caller,
  { address }: Pick<Vault, 'address'>,
  publicKey: string,
  approvals?: readonly Approval[],
): Promise<{ attestationSlug: string }> {
  const digest = hashKey(publicKey)
  const body = { key: publicKey, approvals }
  // An approval needs no session.
  const call = createCall(approvals === undefined ? config : { apiBaseUrl: config.apiBaseUrl })
  const options = { body, digest, ...(approvals && { credentials: 'omit' as const }) }
  const { slug } = await call('POST /vaults/:address/revoke', object({ slug: slugSchema }), options, { address })
  return { attestationSlug: slug }
}

/** The digest of a revocation. Throws `invalid_request` unless the key is 32 bytes in hex. */
export function hashKey(publicKey: string): Hex {
  if (!isHex(publicKey, 32)) throw createError('invalid_request', 'the public key is not 32 bytes of lower-case hex')
  return sha256(`0x${publicKey}`)
}

function toAttestResult({ slug: attestationSlug, owner }: AttestAddressResponse): AttestAddressResult {
  return { attestationSlug, owner }
}
