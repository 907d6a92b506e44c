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
import { type EntropySetting, type Hex, ServiceError, toCanonicalJson } from '@countersign/protocol'
import { MAX_BODY_BYTES } from '../bodyLimit.ts'
import { CoordinatorError, vaultKeyChanged } from '../errors.ts'
import type { KeyEnclave } from '../sign/enclave/keyEnclave.ts'
import type { Store } from '../store/openStore.ts'
import type { Session } from '../store/sessions.ts'
import type { StoredPolicy, Vault } from '../store/vaults.ts'
import type { Clock, Schedule } from '../system.ts'
import { assertDerived, deriveVaultKey } from './deriveVaultKey.ts'

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
  /** Whose samples this service signs with. */
  entropySources: readonly EntropySetting[]
  /** For which chains it signs. */
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
