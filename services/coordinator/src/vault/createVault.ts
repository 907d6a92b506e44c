import { hash } from 'node:crypto'
import { assertPolicy, type Policy, toPolicyBytes, VaultPolicyError } from '@countersign/policy'
import { fromHex, toAddress } from '@countersign/protocol'
import { CoordinatorError, invalidAnswer } from '../errors.ts'
import type { Clock, KeyEnclave, Schedule, Store } from '../ports.ts'
import type { Session, StoredPolicy, Vault } from '../store/types.ts'
import { assertSignable, type SignableTerms } from './assertSignable.ts'

export type CreateVaultDeps = SignableTerms & {
  store: Pick<Store, 'createVault' | 'findVault'>
  enclave: Pick<KeyEnclave, 'deriveVault'>
  clock: Clock
  schedule: Schedule
}

export const MAX_VAULTS = 100
/** How often the store is asked whether a worker has pinned the policy, and for how long. */
const POLL_MS = 200
const PATIENCE_MS = 15_000

/**
 * `POST /vaults`. A lost policy is a lost key: the address is answered only once the policy's block was read back from where a worker
 * has pinned it. Asked again, it answers the vault that is there, or goes on waiting; but a policy with more time sources than a new
 * one may have is refused before anything is looked up. Throws `invalid_policy`, `too_many_vaults` and `policy_not_pinned`.
 */
export async function createVault(
  deps: CreateVaultDeps,
  { sid, session, policy: value }: { sid: string; session: Session; policy: unknown },
): Promise<Vault> {
  const { userId, grant } = session
  const policy = toStoredPolicy(value)
  const earlier = await deps.store.findVault({ userId, policyHash: policy.hash })
  if (earlier?.isPinned) return earlier
  assertSignable(value as Policy, deps)
  const derived = await deps.enclave.deriveVault({ sid, grant, policy: policy.text })
  const { address, keyId: kmsKeyId } = derived
  if (derived.policy !== policy.hash || toAddress(fromHex(derived.publicKey)) !== address) {
    throw invalidAnswer('vault')
  }
  const vault = { userId, address, kmsKeyId, policy, limit: MAX_VAULTS, now: deps.clock.now() }
  return waitUntilPinned(deps, await deps.store.createVault(vault))
}

function toStoredPolicy(value: unknown): StoredPolicy {
  try {
    assertPolicy(value, { isNew: true })
    const bytes = toPolicyBytes(value)
    return { hash: hash('sha256', bytes, 'hex'), text: Buffer.from(bytes).toString('utf8') }
  } catch (error) {
    if (!(error instanceof VaultPolicyError)) throw error
    throw new CoordinatorError('invalid_policy', error.message, { details: error.details })
  }
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
