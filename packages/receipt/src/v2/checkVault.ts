import { isSatisfied } from '@countersign/log'
import {
  checkApprovals,
  checkPolicy,
  describeApprovalsFault,
  describeRefusal,
  hashApprovals,
  type Policy,
  type PolicyRequest,
  parsePolicy,
  type Rule,
  verifyEs256,
  verifySample,
} from '@countersign/policy'
import {
  type Approval,
  type ApprovalKind,
  type AttestationReceiptV2,
  fromHex,
  type Hex,
  MAX_RULES,
  type OpeningContent,
  pickContent,
  toHex,
  toPrefixedHex,
  verifyEd25519,
} from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { failIf, needs, StepFailure, StepSkip, type Transcript } from '../check/steps.ts'
import { toCid, toCidHash } from '../cid.ts'
import { checkBudget, readBudget } from './checkBudget.ts'
import type { LogInclusion } from './checkLog.ts'

/**
 * vault-policy → vault-rule → vault-approvals → vault-budget: repeats the enclave's checks before a vault signs. A wallet without a policy has
 * none of these steps, an attested address only the first, and a revocation not the last. Returns the policy if it matches the statement.
 */
export async function checkVault(
  { run }: Transcript,
  receipt: AttestationReceiptV2,
  {
    block,
    content,
    isLogKnown,
    logged,
  }: {
    block: Uint8Array | undefined
    content: OpeningContent | undefined
    /** Whether the batch is there, so that the step `log` could run. */
    isLogKnown: boolean
    /** The receipt's log entry. */
    logged: LogInclusion | undefined
  },
): Promise<Policy | undefined> {
  const { statement } = receipt.signer
  const { policy: named } = receipt
  // If only one of them names a policy, the step `statement` has failed.
  if (statement.policy === null || named === undefined) return undefined

  const policy = await run('vault-policy', () => {
    failIf(
      toCidHash(named) !== statement.policy,
      `The receipt names the policy ${named}, but the statement names another.`,
    )
    const bytes = needs(block, 'the policy block was not given')
    const cid = toCid(bytes)
    failIf(cid !== named, `The policy block has the CID ${cid}, but another is named.`)
    return [`The block ${named} is the policy that the statement names.`, parsePolicy(bytes)]
  })
  if (receipt.kind === 'address') return policy

  const verdict = await run('vault-rule', () => {
    const rules = needs(policy, 'there is no policy to compare with')
    // Required for all kinds, whether the content is shown or not.
    failIf(
      isLogKnown && rules.log !== null && !isSatisfied(rules.log, logged?.cosigners ?? []),
      'The policy requires a log with cosignatures of more of its witnesses.',
    )
    const isCosigned = isLogKnown || rules.log === null || undefined
    const logMissing = 'the batch with the log’s settings is missing'
    if (receipt.kind === 'revocation') {
      failIf(!isAgentKey(rules, receipt.subject.key), 'The policy has no agent with the revoked key.')
      needs(isCosigned, logMissing)
      failIf(logged?.origin !== rules.log?.origin, 'The log is another one than the policy’s.')
      return ['The revoked key is that of an agent of the policy.', undefined]
    }
    const rule = getRule(rules, statement.rule)
    failIf(
      receipt.kind === 'off-chain' && !mayAllowOffChain(rule),
      'The policy does not allow it. The rule is for transactions.',
    )
    failIf(
      statement.session === 'none' && (rule.kind !== 'spend' || rule.session),
      'The rule requires a session, but there was none.',
    )
    const context = { vaultAddress: statement.address, nowMs: toTime(statement) }
    const request = toSigned(receipt, content).toRequest(rules)
    const found = checkPolicy(rules, request, statement.rule ?? -1, context)
    if (!found.allowed)
      throw new StepFailure(`The policy does not allow it. ${describeRefusal(rules, found).join(' ')}`)
    needs(isCosigned, logMissing)
    return [`Rule ${found.rule + 1} of ${rules.rules.length} allows it; approvals needed: ${found.approvals}.`, found]
  })

  const chosen = policy?.rules[statement.rule ?? -1]
  await run('vault-approvals', () => {
    const rules = needs(policy, 'there is no policy to compare with')
    // Even if the content is not shown.
    const isUnapproved = statement.approvals === null && (chosen?.approvals ?? 0) > 0
    failIf(receipt.kind === 'off-chain' && isUnapproved, 'Nobody approved it, but the rule requires approval.')
    const { kind, digest, approvals } = toSigned(receipt, content)
    const hash = approvals === undefined ? null : toHex(hashApprovals(approvals))
    failIf(hash !== statement.approvals, 'The approvals are not the ones that the statement names.')
    const required = receipt.kind === 'revocation' ? Number(statement.session === 'none') : verdict?.approvals
    const found = checkApprovals(
      { verifyEs256, verifyEd25519 },
      {
        policy: rules,
        vaultAddress: statement.address,
        rule: receipt.kind === 'revocation' ? MAX_RULES : (statement.rule ?? -1),
        kind,
        digest: fromHex(digest.slice(2)),
        approvals: approvals ?? [],
        required: needs(required, 'the required number is unknown without a matching rule'),
        nowMs: toTime(statement),
      },
    )
    if (!found.valid) throw new StepFailure(describeApprovalsFault(found))
    return [`Approvers that approved: ${approvals?.length ?? 0} of ${rules.approvers.length}.`, undefined]
  })

  const budget = readBudget(receipt, content)
  if (chosen?.kind !== 'spend' && budget === undefined) return policy
  await run('vault-budget', () => {
    const rules = needs(policy, 'there is no policy to compare with')
    toSigned(receipt, content)
    const { spends } = needs(verdict, 'the amounts are unknown without a matching rule')
    return [checkBudget({ policy: rules, spends, budget, signedAtMs: toTime(statement), logged }), undefined]
  })
  return policy
}

/** Only the key of an agent can be revoked. */
function isAgentKey({ approvers }: Policy, key: string): boolean {
  return approvers.some(({ type, publicKey }) => type === 'key' && publicKey === key)
}

/** Throws for a rule that the policy doesn't have. */
function getRule({ rules }: Policy, index: number | null): Rule {
  const rule = rules[index ?? -1]
  if (rule !== undefined) return rule
  throw new StepFailure(`The policy has ${rules.length} rules, but the statement names rule ${(index ?? -1) + 1}.`)
}

function mayAllowOffChain(rule: Rule): boolean {
  if (rule.kind === 'spend') return rule.forms.some((form) => form === 'eip3009' || form === 'x402-permit2')
  return rule.kind !== 'transaction'
}

function toTime({ signedAt }: AttestationReceiptV2['signer']['statement']): number {
  return new Date(signedAt).getTime()
}

type SignedByVault = {
  kind: ApprovalKind
  digest: Hex
  approvals: readonly Approval[] | undefined
  /** The request for `checkPolicy`. A schedule takes the time from the receipt's sample, if one of the policy's sources signed it. */
  toRequest(policy: Policy): PolicyRequest
}

/** The request that the rules apply to, or a revocation, which no rule does. For an off-chain signature, it needs an opening. */
function toSigned(receipt: AttestationReceiptV2, content: OpeningContent | undefined): SignedByVault {
  if (receipt.kind === 'transaction') {
    const { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = receipt.subject
    const txMetadata = { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas }
    return {
      kind: 'transaction',
      digest: receipt.subject.digestSigned,
      approvals: receipt.approvals,
      toRequest: ({ time }) => {
        const sample = verifySample(time, receipt.entropy)
        return { kind: 'transaction', txMetadata, ...(sample && { sample }) }
      },
    }
  }
  if (receipt.kind === 'revocation') {
    const digest = toPrefixedHex(sha256(fromHex(receipt.subject.key)))
    const toRequest = () => {
      throw new StepSkip('Not checked: no rule is for revocations.')
    }
    return { kind: 'revocation', digest, approvals: receipt.approvals, toRequest }
  }
  if (content === undefined) {
    throw new StepSkip(
      'Not checked: the signed content is not shown. Its owner can show it and the approvals with an opening.',
    )
  }
  const { kind, digest } = content
  return {
    kind,
    digest,
    // Must be in canonical form, otherwise `hashApprovals` throws.
    approvals: content.approvals as readonly Approval[] | undefined,
    toRequest: () => pickContent(content),
  }
}
