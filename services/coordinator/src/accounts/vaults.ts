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

export const MAX_VAULTS = 100
/** How often the store is asked whether a worker has pinned the policy, and for how long. */
const POLL_MS = 200
const PATIENCE_MS = 15_000

/**
 * `POST /vaults`. A lost policy is a lost key: the address is answered only once the policy's block was read back from where a worker
 * has pinned it. Asked again, it answers the vault that is there, even one that could not be made today, or goes on waiting. So it is
 * with one that the database has lost, for a caller who has its `address`: nobody is told that of a vault that was never made. Throws
 * `invalid_policy`, `too_many_vaults`, `policy_not_pinned`, `vault_not_found` where the address is another, and `key_binding_mismatch`
 * where the enclave derives another key than is stored.
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
    // Only now: it may have many sources of time, and who was never told the address is not to keep this thread busy with them.
    toPolicy(value, { isNew: false })
  }
  const wanted = { userId, ...key, policy, limit: isKnown ? null : MAX_VAULTS, now: deps.clock.now() }
  const vault = await waitUntilPinned(deps, await deps.store.createVault(wanted))
  // By now it is what the database says, which was read again and again meanwhile.
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
  for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs += POLL_MS) {
    if (vault?.isPinned) return vault
    await new Promise<void>((resolve) => schedule(resolve, POLL_MS))
    vault = await store.findVault({ userId, policyHash: policy.hash })
  }
  throw new CoordinatorError('policy_not_pinned', 'the policy is not pinned yet')
}

/** A request to sign a transaction at its largest, without data and approvals. */
const REQUEST_BYTES = 1_024
/** Browsers write some 150 bytes of client data, in which the longest text is the origin. All of it is hex. */
const APPROVAL_BYTES = 1_024

type SignableTerms = {
  entropySources: readonly EntropySetting[]
  chains: SignedChains
}

/**
 * Refuses a policy with something that this service could never sign: what is sent to the vault's address would be locked in. Throws
 * `invalid_policy`.
 */
function assertSignable(policy: Policy, { entropySources, chains }: SignableTerms): void {
  if (!canTellTime(policy, entropySources)) throw unsignable('time names no source that this service takes samples of')
  for (const [index, rule] of policy.rules.entries()) {
    if (!canSignOnChains(rule, chains)) throw unsignable(`rules[${index}]: this service does not sign for its chains`)
    if (countBodyBytes(rule) > MAX_BODY_BYTES) {
      throw unsignable(`rules[${index}].words: a transaction with so many does not fit into a request`)
    }
  }
}

/** Of a request for what a rule allows, with the approvals that it asks for. */
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

/** Beyond this the oldest are derived again. A hundred bytes each, about. */
const MAX_VERIFIED = 10_000
/** Calls of the enclave for lists at one time: those of signing and sign-in go by the same connections. */
const SLOTS = 4

/**
 * `GET /vaults`, oldest first. People pay to what is listed, so each vault is what the enclave derives, once in a session: the session secret is
 * what no thief of the database has. Throws `key_binding_mismatch`.
 */
export function createListVaults({ store, enclave }: ListVaultsDeps) {
  /** Hashes of session and vault. */
  const verified = new Set<string>()
  const checks = createGatherer<VaultCheck, void>({
    async run(asked, { answer }) {
      for (const one of asked) {
        await verify(one)
        answer(one, { status: 'fulfilled', value: undefined })
      }
    },
    // Lists that are asked for at the same time wait for one call.
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
    // One after the other: where the enclave does not answer, one call says so.
    for (const vault of vaults) {
      const name = toName(parameters.sid, vault)
      if (!verified.has(name)) await checks.add({ ...parameters, vault, name })
    }
    return vaults
  }
}

function toName(sid: string, { address, kmsKeyId, policy }: Vault): string {
  return hash('sha256', JSON.stringify([sid, address, kmsKeyId, policy.hash, policy.text]), 'base64')
}

/** The public part of a vault: never its key id or its user. */
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
  /** A vault that exists has its key, whatever the enclave would say of its rules today. */
  isKnown: boolean
}

/** What the enclave derives for the user of the session. Throws `invalid_policy` where no such vault may be made. */
async function deriveVaultKey(
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
function assertDerived({ address, kmsKeyId }: VaultKey, derived: VaultKey): void {
  if (address !== derived.address || kmsKeyId !== derived.kmsKeyId) throw vaultKeyChanged()
}
