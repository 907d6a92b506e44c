import { hash } from 'node:crypto'
import {
  assertPolicy,
  canSignOnChains,
  canTellTime,
  MAX_POLICY_BYTES,
  normalisePolicy,
  type Policy,
  type Rule,
  type SignedChains,
} from '@countersign/policy'
import {
  type EntropySetting,
  fromHex,
  type Hex,
  type OwnerOpening,
  ServiceError,
  toAddress,
  toCanonicalJson,
  type VaultInfo,
} from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import { CoordinatorError, invalidAnswer, vaultKeyChanged } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import { createGatherer } from '../store/gather.ts'
import type { Store } from '../store/openStore.ts'
import type { Session } from '../store/sessions.ts'
import type { StoredPolicy, Vault } from '../store/vaults.ts'
import type { Clock, Schedule } from '../system.ts'

export type CreateVaultDeps = SignableTerms & {
  store: Pick<Store, 'createVault' | 'findVault'>
  enclave: Pick<KeyEnclave, 'deriveVault'>
  clock: Clock
  schedule: Schedule
}

type CreateVaultParameters = { sid: string; session: Session; policy: unknown; address: Hex | undefined }

/** Per user. Policies stay pinned permanently, and `GET /vaults` returns all vaults of a user at once. */
export const MAX_VAULTS = 100
/** How often and how long to check whether a worker has pinned the policy. */
const POLL_MS = 200
const WAIT_MS = 15_000

/**
 * `POST /vaults`. Without its policy, a vault's key is lost, so this returns the address only after a worker has pinned the policy and read
 * its block back. A repeated call returns the existing vault, even if new rules are no longer allowed, or continues to wait. A caller with
 * the vault's `address` also restores a vault that the database has lost. The address proves that the vault existed. Throws `invalid_policy`,
 * `too_many_vaults`, `policy_not_pinned`, `vault_not_found` if the address differs, and `key_binding_mismatch` if the stored key differs from
 * the derived one.
 */
export async function createVault(
  deps: CreateVaultDeps,
  { sid, session, policy: given, address }: CreateVaultParameters,
): Promise<Vault> {
  const { userId, grant } = session
  const { value, policy } = toStoredPolicy(given)
  const earlier = await deps.store.findVault({ userId, policyHash: policy.hash })
  const isKnown = address !== undefined || earlier?.isPinned === true
  if (!isKnown) assertSignable(toPolicy(value, { isNew: true }), deps)
  const key = await deriveVaultKey(deps.enclave, { sid, grant, policy, isKnown })
  if (address !== undefined) {
    if (key.address !== address) {
      const details = 'the user has no vault of this policy at this address'
      throw new CoordinatorError('vault_not_found', 'no such vault', { details })
    }
    // Checked after the address, because a policy may name many time sources. A caller without the address can't make the service check them.
    toPolicy(value, { isNew: false })
  }
  const { address: derived, kmsKeyId } = key
  const parameters = {
    userId,
    address: derived,
    kmsKeyId,
    policy,
    limit: isKnown ? null : MAX_VAULTS,
    now: deps.clock.now(),
  }
  const vault = await waitUntilPinned(deps, await deps.store.createVault(parameters))
  // `vault` now comes from the database.
  assertDerived(vault, key)
  if (vault.policy.text !== policy.text) throw vaultKeyChanged()
  return vault
}

/**
 * Accepts any value within the size limit. A value that is already stored under its hash was valid when it was created. Only the
 * normalised policy is stored and sent to the enclave.
 */
function toStoredPolicy(given: unknown): { value: unknown; policy: StoredPolicy } {
  try {
    // Checks size and depth first, because sorting takes longer.
    if (toCanonicalJson(given).length > MAX_POLICY_BYTES) {
      const details = `more than ${MAX_POLICY_BYTES} bytes`
      throw new CoordinatorError('invalid_policy', 'the policy is too large', { details })
    }
    const value = normalisePolicy(given)
    const bytes = toCanonicalJson(value)
    return { value, policy: { hash: hash('sha256', bytes, 'hex'), text: Buffer.from(bytes).toString('utf8') } }
  } catch (error) {
    throw toPolicyProblem(error)
  }
}

function toPolicy(value: unknown, { isNew }: { isNew: boolean }): Policy {
  try {
    assertPolicy(value, { isNew })
    return value
  } catch (error) {
    throw toPolicyProblem(error)
  }
}

function toPolicyProblem(error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  return new CoordinatorError('invalid_policy', error.message, { details: error.details })
}

async function waitUntilPinned({ store, schedule }: CreateVaultDeps, created: Vault): Promise<Vault> {
  const { userId, policy } = created
  let vault: Vault | undefined = created
  for (let waitedMs = 0; waitedMs < WAIT_MS; waitedMs += POLL_MS) {
    if (vault?.isPinned) return vault
    await new Promise<void>((resolve) => schedule(resolve, POLL_MS))
    vault = await store.findVault({ userId, policyHash: policy.hash })
  }
  throw new CoordinatorError('policy_not_pinned', 'the policy is not pinned yet')
}

/** Maximum size of a transaction request without data and approvals. */
const REQUEST_BYTES = 1_024
/** Browsers write about 150 bytes of client data, most of it the origin. All of it is in hex. */
const APPROVAL_BYTES = 1_024

type SignableTerms = {
  entropySources: readonly EntropySetting[]
  chains: SignedChains
}

/**
 * Rejects a policy with a rule that this service could never sign for, because funds sent to the vault would be locked. Throws
 * `invalid_policy`.
 */
function assertSignable(policy: Policy, { entropySources, chains }: SignableTerms): void {
  if (!canTellTime(policy, entropySources)) throw unsignable('time names no entropy source of this service')
  for (const [index, rule] of policy.rules.entries()) {
    if (!canSignOnChains(rule, chains)) throw unsignable(`rules[${index}]: this service does not sign for its chains`)
    if (countBodyBytes(rule) > MAX_BODY_BYTES) {
      throw unsignable(`rules[${index}].words: such a transaction exceeds the size limit of a request`)
    }
  }
}

/** The size of a request for a transaction that the rule allows, with the required approvals. */
function countBodyBytes(rule: Rule): number {
  const words = rule.kind === 'transaction' ? (rule.words ?? 0) : 0
  // `0x`, the selector and the words, in hex.
  return REQUEST_BYTES + rule.approvals * APPROVAL_BYTES + 2 + 2 * (4 + 32 * words)
}

function unsignable(details: string) {
  return new CoordinatorError('invalid_policy', 'this service could never sign for the vault', { details })
}

export type ListVaultsDeps = {
  store: Pick<Store, 'listVaults'>
  enclave: Pick<KeyEnclave, 'deriveVault'>
}

type ListVaultsParameters = { sid: string; session: Pick<Session, 'userId' | 'grant'> }
type VaultCheck = ListVaultsParameters & { vault: Vault; name: string }

/** The number of cached checks, about a hundred bytes each. Above it, the oldest are dropped. */
const MAX_VERIFIED = 10_000
/** Concurrent calls to the enclave for lists. They share connections with signing and sign-in. */
const SLOTS = 4

/**
 * `GET /vaults`, oldest first. Users pay to the listed addresses, so each vault is derived again by the enclave, once per session. A thief of
 * the database lacks the session secret. Throws `key_binding_mismatch`.
 */
export function createListVaults({ store, enclave }: ListVaultsDeps) {
  /** Hashes of session and vault. */
  const verified = new Set<string>()
  const checks = createGatherer<VaultCheck, void>({
    async run(requests, { answer }) {
      for (const one of requests) {
        await verify(one)
        answer(one, { status: 'fulfilled', value: undefined })
      }
    },
    // Concurrent lists of the same vault share one call.
    keyOf: ({ name }) => name,
    limit: 1,
    slots: SLOTS,
  })

  async function verify({ vault, name, sid, session: { grant } }: VaultCheck): Promise<void> {
    assertDerived(vault, await deriveVaultKey(enclave, { sid, grant, policy: vault.policy, isKnown: true }))
    verified.add(name)
    const [oldest = ''] = verified
    if (verified.size > MAX_VERIFIED) verified.delete(oldest)
  }

  return async (parameters: ListVaultsParameters): Promise<Vault[]> => {
    const vaults = await store.listVaults(parameters.session.userId)
    // One at a time: if the enclave doesn't respond, only one call fails.
    for (const vault of vaults) {
      const name = toCheckKey(parameters.sid, vault)
      if (!verified.has(name)) await checks.add({ ...parameters, vault, name })
    }
    return vaults
  }
}

function toCheckKey(sid: string, { address, kmsKeyId, policy }: Vault): string {
  return hash('sha256', JSON.stringify([sid, address, kmsKeyId, policy.hash, policy.text]), 'base64')
}

/** The public part of a vault, without its key id and user. */
export function toVaultInfo({ address, createdAt, policy: { hash, text } }: Vault): VaultInfo {
  return {
    address,
    policyHash: hash,
    policyCid: toCid(new TextEncoder().encode(text)),
    policy: JSON.parse(text),
    createdAt: new Date(createdAt).toISOString(),
  }
}

type VaultKey = Pick<Vault, 'address' | 'kmsKeyId'>

type DeriveVaultKeyParameters = {
  sid: string
  grant: string
  policy: StoredPolicy
  /** Whether the vault already exists. If so, the enclave derives its key even if new rules are no longer allowed. */
  isKnown: boolean
}

type FindVaultOwnerParameters = Pick<DeriveVaultKeyParameters, 'sid' | 'grant' | 'policy'> & {
  address: Hex
  keyId: string
}

/** Derives the vault's key for the session's user. Throws `invalid_policy` if the enclave rejects a new vault with this policy. */
async function deriveVaultKey(
  enclave: Pick<KeyEnclave, 'deriveVault'>,
  { sid, grant, policy, isKnown }: DeriveVaultKeyParameters,
): Promise<VaultKey & { owner: OwnerOpening }> {
  const derived = await enclave.deriveVault({ sid, grant, policy: policy.text, ...(isKnown && { isKnown }) })
  const { address, keyId: kmsKeyId, owner } = derived
  if (derived.policy !== policy.hash || toAddress(fromHex(derived.publicKey)) !== address) {
    throw invalidAnswer('vault')
  }
  return { address, kmsKeyId, owner }
}

/** Opens the owner commitment of a vault's address. Throws `key_binding_mismatch`. */
export async function findVaultOwner(
  enclave: Pick<KeyEnclave, 'deriveVault'>,
  { sid, grant, policy, address, keyId: kmsKeyId }: FindVaultOwnerParameters,
): Promise<OwnerOpening> {
  const key = await deriveVaultKey(enclave, { sid, grant, policy, isKnown: true })
  assertDerived({ address, kmsKeyId }, key)
  return key.owner
}

/** Users pay to a vault's address, so the stored address must equal the derived one. Throws `key_binding_mismatch`. */
function assertDerived({ address, kmsKeyId }: VaultKey, derived: VaultKey): void {
  if (address !== derived.address || kmsKeyId !== derived.kmsKeyId) throw vaultKeyChanged()
}
