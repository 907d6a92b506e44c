import {
  type Approval,
  type BudgetCounter,
  type CheckApprovalsParameters,
  checkApprovals,
  checkPolicy,
  countSpends,
  createPolicy,
  describeApprovalsFault,
  describeRefusal,
  hashApprovals,
  type Policy,
  type PolicyRequest,
  type Spend,
  toPolicyBytes,
  VaultPolicyError,
  verifyEs256,
} from '@countersign/policy'
import {
  fromHex,
  type Hex,
  MAX_RULES,
  toHex,
  type VaultBudget,
  type VaultBudgetInfo,
  type VaultInfo,
  verifyEd25519,
} from '@countersign/protocol'
import { keccak256, sha256 } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { toRawCid } from '../vaults/vault.ts'
import { ProblemFailure } from './problems.ts'
import type { TestSigner } from './testSignings.ts'

export type TestVault = { info: VaultInfo; account: PrivateKeyAccount; signer: TestSigner; state: TestVaultState }

/** The counted payments, and the revoked keys. */
type TestVaultState = {
  sequence: number
  counters: readonly BudgetCounter[]
  revoked: readonly string[]
  /** By digest. */
  counted: Map<Hex, { budget: VaultBudget; atMs: number }>
}

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
  const state = { sequence: 0, counters: [], revoked: [], counted: new Map() }
  return { info, account, signer: { address, publicKey: account.publicKey, policyHash }, state }
}

function readPolicy(value: unknown): Uint8Array {
  try {
    return toPolicyBytes(createPolicy(value as Policy))
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
  hasSession: boolean
}

/** What allowed a vault to sign: the hash of its approvals, if any, and the counted amounts. */
export type VaultPermission = {
  session: 'cookie' | 'none'
  approvals: string | null
  budget: VaultBudget | undefined
}

/**
 * Decides like the enclave, with the same code, and counts a payment. Takes the time of a schedule from the sample, and the time of budgets
 * from the clock. Throws `policy_refused`, `approvals_missing`, `approval_invalid` and `budget_exceeded`.
 */
export function assertVaultAllows(
  { info, state }: TestVault,
  { request, digest, rule, approvals = [], hasSession }: VaultSignRequest,
): VaultPermission {
  const policy = info.policy as Policy
  const [source] = policy.time ?? []
  const nowMs = Date.now()
  const isTimed = request.kind === 'transaction' && source !== undefined
  const timed = isTimed ? { ...request, sample: { source, timeMs: nowMs } } : request
  const verdict = checkPolicy(policy, timed, rule, { vaultAddress: info.address, nowMs })
  if (!verdict.allowed) {
    throw new ProblemFailure({ code: 'policy_refused', detail: describeRefusal(policy, verdict).join(' ') })
  }
  const allowing = policy.rules[rule]
  if (!hasSession && !(allowing?.kind === 'spend' && !allowing.session)) throw notApproved()
  assertApproved(info, { rule, kind: request.kind, digest, approvals, required: verdict.approvals })
  const isRevoked = ({ approver }: Approval) => state.revoked.includes(policy.approvers[approver]?.publicKey ?? '')
  if (approvals.some(isRevoked)) throw notApproved('the key of an approval was revoked')
  const hash = approvals.length === 0 ? null : toHex(hashApprovals(approvals))
  const session = hasSession ? 'cookie' : 'none'
  return {
    session,
    approvals: hash,
    budget: verdict.spends && count(policy, state, { digest, spends: verdict.spends, nowMs }),
  }
}

type AssertApprovedParameters = Omit<CheckApprovalsParameters, 'policy' | 'vaultAddress' | 'digest' | 'nowMs'> & {
  digest: Hex
}

function assertApproved({ policy, address }: VaultInfo, { digest, ...parameters }: AssertApprovedParameters): void {
  const signed = { policy: policy as Policy, vaultAddress: address, digest: fromHex(digest.slice(2)) }
  const deps = { verifyEs256, verifyEd25519 }
  const verdict = checkApprovals(deps, { ...signed, ...parameters, nowMs: Date.now() })
  if (verdict.valid) return
  const code = verdict.reason === 'approvals_missing' ? 'approvals_missing' : 'approval_invalid'
  throw new ProblemFailure({ code, detail: describeApprovalsFault(verdict) })
}

function notApproved(detail?: string) {
  return new ProblemFailure({ code: 'approval_invalid', detail })
}

/** A repeated digest is not counted again. */
const REPEAT_MS = 600_000

function count(
  { budgets = [] }: Policy,
  state: TestVaultState,
  { digest, spends, nowMs }: { digest: Hex; spends: readonly Spend[]; nowMs: number },
): VaultBudget {
  const known = state.counted.get(digest)
  if (known !== undefined && nowMs - known.atMs < REPEAT_MS) return { ...known.budget, isRepeated: true }
  const time = Math.floor(nowMs / 1000)
  const verdict = countSpends(budgets, state.counters, spends, time)
  if (!verdict.allowed) {
    throw new ProblemFailure({ code: 'budget_exceeded', budget: verdict.budget, left: String(verdict.left) })
  }
  state.counters = verdict.counters
  state.sequence += 1
  const items = verdict.changes.map(({ budget, window, before, after }) => ({
    budget,
    window,
    before: String(before),
    after: String(after),
  }))
  const isTimed = items.some(({ budget }) => (budgets[budget]?.periodS ?? 0) > 0)
  const budget = { time: isTimed ? time : null, sequence: state.sequence, isRepeated: false, items }
  state.counted.set(digest, { budget, atMs: nowMs })
  return budget
}

/** Without a proof: a test service has no log. */
export function toBudgetInfo({ info, state: { sequence, counters, revoked } }: TestVault): VaultBudgetInfo {
  const { budgets = [] } = info.policy as Policy
  const time = Math.floor(Date.now() / 1000)
  return {
    time,
    sequence,
    budgets: budgets.map(({ limit, periodS }, index) => {
      const { window, spent } = counters[index] ?? { window: 0, spent: 0n }
      const isCurrent = periodS === 0 || Math.floor(time / periodS) <= window
      return { window, spent: String(spent), left: String(BigInt(limit) - (isCurrent ? spent : 0n)) }
    }),
    revoked: [...revoked],
    proof: null,
  }
}

/** Revokes the key of an agent. Throws `approval_invalid`, and `invalid_request` for another key. */
export function revokeTestKey(
  { info, state }: TestVault,
  { key, approvals = [], hasSession }: { key: string; approvals: readonly Approval[] | undefined; hasSession: boolean },
): void {
  const { approvers } = info.policy as Policy
  if (!approvers.some(({ type, publicKey }) => type === 'key' && publicKey === key)) {
    throw new ProblemFailure({ code: 'invalid_request', detail: 'the key is not an approver of the vault' })
  }
  const required = hasSession ? 0 : 1
  assertApproved(info, { rule: MAX_RULES, kind: 'revocation', digest: sha256(`0x${key}`), approvals, required })
  if (state.revoked.includes(key)) return
  state.revoked = [...state.revoked, key]
  state.sequence += 1
}
