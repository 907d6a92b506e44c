import {
  checkApprovals,
  checkPolicy,
  createPolicy,
  describeApprovalsFault,
  describeRefusal,
  hashApprovals,
  type Policy,
  type PolicyRequest,
  toPolicyBytes,
  VaultPolicyError,
  verifyEs256,
} from '@countersign/policy'
import { type Approval, fromHex, type Hex, toHex, type VaultInfo, verifyEd25519 } from '@countersign/protocol'
import { keccak256, sha256 } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { toRawCid } from '../vaults/vault.ts'
import { ProblemFailure } from './problems.ts'
import type { TestSigner } from './testSignings.ts'

export type TestVault = { info: VaultInfo; account: PrivateKeyAccount; signer: TestSigner }

export type TestVaults = {
  /** Oldest first. */
  list(): readonly VaultInfo[]
  /** Throws `invalid_policy`, `too_many_vaults` and `vault_not_found`. The same policy is the same vault. With an address, it restores a vault. */
  create(request: { policy: unknown; address: Hex | undefined }): VaultInfo
  /** Throws `vault_not_found`. */
  find(address: Hex): TestVault
}

const MAX_VAULTS = 100

/** The vaults of a test service. Their keys derive from their policies without a secret. */
export function createTestVaults(): TestVaults {
  const vaults = new Map<Hex, TestVault>()

  return {
    list: () => [...vaults.values()].map(({ info }) => info),
    create({ policy, address: given }) {
      const vault = toVault(policy)
      const { address } = vault.info
      if (given !== undefined && given !== address) throw new ProblemFailure({ code: 'vault_not_found' })
      const earlier = vaults.get(address)
      if (earlier !== undefined) return earlier.info
      if (given === undefined && vaults.size >= MAX_VAULTS) throw new ProblemFailure({ code: 'too_many_vaults' })
      vaults.set(address, vault)
      return vault.info
    },
    find(address) {
      const vault = vaults.get(address)
      if (vault === undefined) throw new ProblemFailure({ code: 'vault_not_found' })
      return vault
    },
  }
}

function toVault(value: unknown): TestVault {
  const bytes = readPolicy(value)
  const hash = sha256(bytes)
  const account = privateKeyToAccount(keccak256(hash))
  const address = account.address.toLowerCase() as Hex
  const policyHash = hash.slice(2)
  const info: VaultInfo = {
    address,
    policyHash,
    policyCid: toRawCid(bytes),
    policy: JSON.parse(new TextDecoder().decode(bytes)),
    createdAt: new Date().toISOString(),
  }
  return { info, account, signer: { address, publicKey: account.publicKey, policyHash } }
}

function readPolicy(value: unknown): Uint8Array {
  try {
    const policy = createPolicy(value as Policy)
    // The test service counts no payments yet.
    if (policy.budgets !== undefined)
      throw new ProblemFailure({ code: 'invalid_policy', detail: 'policy_not_supported' })
    return toPolicyBytes(policy)
  } catch (error) {
    if (!(error instanceof VaultPolicyError)) throw error
    throw new ProblemFailure({ code: 'invalid_policy', detail: error.details })
  }
}

export type VaultSignRequest = {
  request: PolicyRequest
  digest: Hex
  rule: number
  approvals: readonly Approval[] | undefined
}

/**
 * Decides like the enclave, with the same code. Takes the time from the sample. Throws `policy_refused`, `approvals_missing` and
 * `approval_invalid`, and returns the hash of the approvals.
 */
export function assertVaultAllows(
  { info }: TestVault,
  { request, digest, rule, approvals = [] }: VaultSignRequest,
): string | null {
  const policy = info.policy as Policy
  const [source] = policy.time ?? []
  const nowMs = Date.now()
  const isTimed = request.kind === 'transaction' && source !== undefined
  const verdict = checkPolicy(policy, isTimed ? { ...request, sample: { source, timeMs: nowMs } } : request, rule)
  if (!verdict.allowed) {
    throw new ProblemFailure({ code: 'policy_refused', detail: describeRefusal(policy, verdict).join(' ') })
  }
  const signed = { policy, vaultAddress: info.address, rule, kind: request.kind, digest: fromHex(digest.slice(2)) }
  const approvalsVerdict = checkApprovals(
    { verifyEs256, verifyEd25519 },
    { ...signed, approvals, required: verdict.approvals, nowMs },
  )
  if (approvalsVerdict.valid) return approvals.length === 0 ? null : toHex(hashApprovals(approvals))
  const code = approvalsVerdict.reason === 'approvals_missing' ? 'approvals_missing' : 'approval_invalid'
  throw new ProblemFailure({ code, detail: describeApprovalsFault(approvalsVerdict) })
}
