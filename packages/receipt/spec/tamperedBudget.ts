import { developmentSeed } from '@countersign/attestation/simulator'
import {
  type Approval,
  type AttestationReceiptV2,
  fromHex,
  hashLeaf,
  hashSubject,
  toCanonicalJson,
  toHex,
  type VaultBudget,
} from '@countersign/protocol'
import type { StepId } from '@countersign/receipt'
import {
  createSimulatedLog,
  type SimulatedApprovalRequest,
  type SimulatedLogOptions,
} from '@countersign/receipt/simulator'
import { sha256 } from '@noble/hashes/sha2.js'
import { agentKeys, agentRule, approveWith, goldenVaults, passkeyRule, spending } from '../test/vaults.ts'
import type { GoldenBlocks, TamperingV2 } from './tamperedV2.ts'

type Change = {
  subject?: object
  statement?: object
  approvals?: readonly Approval[] | undefined
  log?: SimulatedLogOptions
}

/**
 * What a broken enclave would have stated: the statement names the changed subject and approvals, and the log has its entry. Only the batch is
 * another one, which `inclusion` would find.
 */
function restate(golden: AttestationReceiptV2, change: Change): TamperingV2<'attestation'>['changes'] {
  // Without members that are undefined.
  const subject: AttestationReceiptV2['subject'] = JSON.parse(JSON.stringify({ ...golden.subject, ...change.subject }))
  const before = 'approvals' in golden ? golden.approvals : undefined
  const approvals = 'approvals' in change ? change.approvals : before
  const statement = {
    ...golden.signer.statement,
    ...change.statement,
    subject: toHex(hashSubject(subject)),
    approvals: approvals === undefined ? null : toHex(sha256(toCanonicalJson(approvals))),
  }
  const { keyId, signedAt } = statement
  const entry = { kind: 'signature', keyId, leaf: toHex(hashLeaf(statement)), timeMs: Date.parse(signedAt) } as const
  const log = createSimulatedLog(developmentSeed, { ...goldenVaults.transfer.log, ...change.log }).prove(entry)
  return [
    { path: ['subject'], value: subject },
    approvals === undefined ? { path: ['approvals'] } : { path: ['approvals'], value: approvals },
    { path: ['signer', 'statement'], value: statement },
    { path: ['log'], value: log },
  ]
}

function createTampering(golden: AttestationReceiptV2) {
  return (name: string, step: StepId, change: Change, code?: string): TamperingV2<'attestation'> => ({
    name,
    block: 'attestation',
    isNamedAnew: false,
    changes: restate(golden, change),
    step,
    ...(code !== undefined && { code }),
  })
}

/** Copies of the golden transfer from a budget, with one fault each. */
export function createBudgetTamperings({
  attestation,
}: Pick<GoldenBlocks, 'attestation'>): TamperingV2<'attestation'>[] {
  if (attestation.kind !== 'transaction' || attestation.subject.budget === undefined) throw new Error('not counted')
  const { budget, digestSigned } = attestation.subject
  const { address, policy } = attestation.signer.statement
  const inReceipt = createTampering(attestation)
  const counted = (name: string, code: string, change: Partial<VaultBudget>, log?: SimulatedLogOptions) =>
    inReceipt(name, 'vault-budget', { subject: { budget: { ...budget, ...change } }, ...(log && { log }) }, code)
  const inItem = (name: string, code: string, index: number, change: Partial<VaultBudget['items'][number]>) =>
    counted(name, code, { items: budget.items.map((item, at) => (at === index ? { ...item, ...change } : item)) })
  const [daily, life, coin] = budget.items as [Item, Item, Item]
  const signedAtS = Math.floor(Date.parse(attestation.subject.signedAt) / 1000)
  const add = (amount: string, more: number) => String(BigInt(amount) + BigInt(more))
  const approve = (by: number, change: Partial<SimulatedApprovalRequest> = {}, expiresMs?: number) =>
    approveWith(spending, { by: [by], ...(expiresMs !== undefined && { expiresMs }) })({
      vaultAddress: address,
      policyHash: fromHex(policy ?? ''),
      rule: agentRule,
      kind: 'transaction',
      digest: fromHex(digestSigned.slice(2)),
      ...change,
    })
  return [
    inItem('a payment above the limit', 'budget_exceeded', 0, { before: '7500001', after: '10000001' }),
    inItem('more counted than paid', 'budget_amount', 0, { after: add(daily.after, 1) }),
    inItem('less counted than paid', 'budget_amount', 1, { before: add(life.before, 1) }),
    inItem('a fee that is not counted', 'budget_amount', 2, { after: coin.before }),
    inItem('an earlier window', 'budget_window', 0, { window: daily.window - 1 }),
    inItem('a window that begins later', 'budget_window', 0, { window: daily.window + 1 }),
    inItem('a window of a budget for life', 'budget_window', 1, { window: daily.window }),
    counted('a budget that is missing', 'budget_items', { items: [daily, coin] }),
    counted('only the budget of the fee', 'budget_items', { items: [coin] }),
    counted('budgets in another order', 'budget_items', { items: [life, daily, coin] }),
    counted('a budget twice', 'budget_items', { items: [daily, daily, life, coin] }),
    counted('a budget that the policy does not have', 'budget_items', {
      items: [daily, life, coin, { ...coin, budget: 3 }],
    }),
    inReceipt('a payment that was not counted', 'vault-budget', { subject: { budget: undefined } }, 'budget_missing'),
    counted('no time', 'budget_time', { time: null }),
    counted('a time of 61 s before the signing', 'budget_time', { time: signedAtS - 61 }),
    counted('a repeated count of 661 s before the signing', 'budget_time', { time: signedAtS - 661, isRepeated: true }),
    counted('a time after the cosignatures', 'budget_time', { time: signedAtS + 2 }),
    counted('cosignatures of 126 s after the signing', 'budget_late', {}, { timestampS: signedAtS + 126 }),
    inReceipt('no items', 'format', { subject: { budget: { ...budget, items: [] } } }),
    inReceipt('a sequence number of 0', 'format', { subject: { budget: { ...budget, sequence: 0 } } }),

    inReceipt('no session under a rule with a session', 'vault-rule', { statement: { rule: passkeyRule } }),
    inReceipt('an approval by an agent of another rule', 'vault-approvals', { approvals: approve(2) }),
    inReceipt('an approval for another rule', 'vault-approvals', { approvals: approve(1, { rule: passkeyRule }) }),
    inReceipt('an approval for another vault', 'vault-approvals', {
      approvals: approve(1, { vaultAddress: `0x${'11'.repeat(20)}` }),
    }),
    inReceipt('an approval of an agent for more than 10 minutes', 'vault-approvals', {
      approvals: approve(1, {}, Date.parse(attestation.subject.signedAt) + 600_001),
    }),
    inReceipt('no approval', 'vault-approvals', { approvals: undefined }),
  ]
}

type Item = VaultBudget['items'][number]

/** Copies of the golden revocation, with one fault each. */
export function createRevocationTamperings({
  attestation,
}: Pick<GoldenBlocks, 'attestation'>): TamperingV2<'attestation'>[] {
  if (attestation.kind !== 'revocation') throw new Error('not a revocation')
  const inReceipt = createTampering(attestation)
  const { address, policy, key } = attestation.subject
  const approve = (by: number, change: Partial<SimulatedApprovalRequest> = {}) =>
    approveWith(spending, { by: [by] })({
      vaultAddress: address,
      policyHash: fromHex(policy),
      rule: 255,
      kind: 'revocation',
      digest: sha256(fromHex(key)),
      ...change,
    })
  const other = agentKeys.find((agent) => agent !== key) ?? ''
  return [
    inReceipt('a rule', 'statement', { statement: { rule: 0 } }),
    inReceipt('another vault', 'statement', { subject: { address: `0x${'11'.repeat(20)}` } }),
    inReceipt('another policy', 'statement', { subject: { policy: '44'.repeat(32) } }),
    inReceipt('a key that the policy does not have', 'vault-rule', { subject: { key: '11'.repeat(32) } }),
    inReceipt('an approval for the key of another agent', 'vault-approvals', { subject: { key: other } }),
    inReceipt('an approval by an agent', 'vault-approvals', { approvals: approve(1) }),
    inReceipt('an approval for a rule', 'vault-approvals', { approvals: approve(0, { rule: passkeyRule }) }),
    inReceipt('neither a session nor an approval', 'vault-approvals', { approvals: undefined }),
  ]
}
