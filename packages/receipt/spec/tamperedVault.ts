import { createPolicy, type Policy, parsePolicy } from '@countersign/policy'
import { toCanonicalJson } from '@countersign/protocol'
import { type GivenBlocks, parseBlock, toCid, toCidHash } from '@countersign/receipt'
import { findRule, type SimulatedAttestation } from '@countersign/receipt/simulator'
import { flip, tamper, toOtherCid } from './tampered.ts'
import { changeIn, type TamperingV2 } from './tamperedV2.ts'

/**
 * A change to a vault's receipt or policy, and the step that must fail first. With `isNamedAnew`, receipt and statement name the changed
 * policy.
 */
export type VaultTampering = TamperingV2<'attestation' | 'policy'>

type VaultBlocks = Pick<SimulatedAttestation, 'bytes' | 'blocks'>

/** Copies of the golden receipt of a vault's transaction, with one fault each. */
export function createVaultTamperings(golden: VaultBlocks): VaultTampering[] {
  const { attestation, policy } = parse(golden)
  const [approval] = attestation.approvals ?? []
  if (approval === undefined) throw new Error('the golden receipt has an approval')
  const inReceipt = changeIn('attestation', false)
  const inPolicy = changeIn('policy', true)
  const stated = (member: string) => ['signer', 'statement', member]
  return [
    inReceipt('an empty list of approvals', 'format', ['approvals'], []),
    inReceipt('an approval with a member too many', 'format', ['approvals', 0, 'name'], 'phone'),
    inReceipt('authenticator data with extensions', 'format', ['approvals', 0, 'authenticatorData'], '00'.repeat(38)),
    inReceipt('a policy that is no CID', 'format', ['policy'], attestation.signer.statement.policy),

    inReceipt('no policy', 'statement', ['policy']),
    inReceipt('no policy stated', 'statement', stated('policy'), null),

    inReceipt('another policy', 'vault-policy', ['policy'], toOtherCid(attestation.policy ?? '')),
    inReceipt('another policy stated', 'vault-policy', stated('policy'), '44'.repeat(32)),
    changeIn('policy', false)(
      'a policy under its old name',
      'vault-policy',
      ['rules'],
      changeRules(policy, { to: 'any' }),
    ),
    inPolicy('a policy of version 2', 'vault-policy', ['version'], 2),
    inPolicy('a policy with a member too many', 'vault-policy', ['label'], 'savings'),
    inPolicy('rules in another order', 'vault-policy', ['rules'], policy.rules.toReversed()),

    inPolicy('another chain', 'vault-rule', ['rules'], changeRules(policy, { chainIds: [1] })),
    inPolicy('another recipient', 'vault-rule', ['rules'], changeRules(policy, { to: [`0x${'ee'.repeat(20)}`] })),
    inPolicy('a lower limit', 'vault-rule', ['rules'], changeRules(policy, { maxValueWei: '999999999999999999' })),
    inPolicy('a lower fee', 'vault-rule', ['rules'], changeRules(policy, { maxFeeWei: '41999999999999' })),
    inPolicy('a log', 'vault-rule', ['log'], {
      quorum: 1,
      witnesses: ['d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'],
    }),

    inReceipt('no approvals', 'vault-approvals', ['approvals']),
    inReceipt('no approvals stated', 'vault-approvals', stated('approvals'), null),
    inReceipt('other approvals stated', 'vault-approvals', stated('approvals'), '44'.repeat(32)),
    inReceipt('the approval twice', 'vault-approvals', ['approvals'], [approval, approval]),
    inReceipt('another approver', 'vault-approvals', ['approvals', 0, 'approver'], approval.approver + 1),
    inReceipt('another expiry', 'vault-approvals', ['approvals', 0, 'expiresMs'], approval.expiresMs + 1),
    inReceipt('another assertion', 'vault-approvals', ['approvals', 0, 'signature'], flip(approval.signature, 20)),
    inPolicy('an approval under other rules', 'vault-approvals', ['rules'], changeRules(policy, { approvals: 2 })),
  ]
}

/** Changes all rules for transactions, and sorts the rules. */
function changeRules(policy: Policy, change: object): unknown {
  const rules = policy.rules.map((rule) => (rule.kind === 'transaction' ? { ...rule, ...change } : rule))
  return createPolicy({ ...policy, rules } as Policy).rules
}

/** Makes the changes on copies. Returns bytes for `checkReceipt`. */
export function tamperVault(
  golden: VaultBlocks,
  { block, isNamedAnew, changes }: Pick<VaultTampering, 'block' | 'isNamedAnew' | 'changes'>,
): { bytes: Uint8Array<ArrayBuffer>; blocks: GivenBlocks } {
  const { attestation, policy } = parse(golden)
  if (block === 'attestation')
    return { bytes: toCanonicalJson(tamper(attestation, { changes })), blocks: golden.blocks }
  const changedPolicy = tamper(policy, { changes })
  const changed = toCanonicalJson(changedPolicy)
  const blocks = { ...golden.blocks, policy: changed }
  if (!isNamedAnew) return { bytes: Uint8Array.from(golden.bytes), blocks }
  const cid = toCid(changed)
  const { signer } = attestation
  // Its rules may be in another order.
  if (attestation.kind !== 'transaction') throw new Error('not a transaction')
  const rule = findRule(changedPolicy as Policy, { transaction: attestation.subject })
  const statement = { ...signer.statement, policy: toCidHash(cid), rule }
  return { bytes: toCanonicalJson({ ...attestation, policy: cid, signer: { ...signer, statement } }), blocks }
}

function parse({ bytes, blocks }: VaultBlocks) {
  if (blocks.policy === undefined) throw new Error('the golden receipt is of a vault')
  return { attestation: parseBlock('attestation', bytes), policy: parsePolicy(blocks.policy) }
}
