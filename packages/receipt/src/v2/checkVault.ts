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
  verifyEs256,
  verifySample,
} from '@countersign/policy'
import {
  type Approval,
  type AttestationReceiptV2,
  fromHex,
  type Hex,
  type OpeningContent,
  pickContent,
  toHex,
} from '@countersign/protocol'
import { failIf, needs, StepFailure, StepSkip, type Transcript } from '../check/steps.ts'
import { toCid, toCidHash } from '../cid.ts'

/**
 * vault-policy → vault-rule → vault-approvals: what the enclave had to check before a vault signed, checked again. A wallet without a
 * policy has none of these steps, an attested address only the first. Answers the policy, where it is the one in the statement.
 */
export async function checkVault(
  { run }: Transcript,
  receipt: AttestationReceiptV2,
  {
    block,
    content,
    cosigners,
  }: {
    block: Uint8Array | undefined
    content: OpeningContent | undefined
    /** Of the log that the receipt is in. */
    cosigners: readonly string[]
  },
): Promise<Policy | undefined> {
  const { statement } = receipt.signer
  const { policy: named } = receipt
  // Where only one of both names a policy, the step `statement` has failed.
  if (statement.policy === null || named === undefined) return undefined

  const policy = await run('vault-policy', () => {
    failIf(toCidHash(named) !== statement.policy, `The receipt names the policy ${named}, the statement another.`)
    const bytes = needs(block, 'the policy block was not given')
    const cid = toCid(bytes)
    failIf(cid !== named, `The policy block has the CID ${cid}, another is named.`)
    return [`The block ${named} is the policy that the statement names.`, parsePolicy(bytes)]
  })
  if (receipt.kind === 'address') return policy

  const verdict = await run('vault-rule', () => {
    const rules = needs(policy, 'there is no policy to judge by')
    // Whatever was signed, shown or not.
    failIf(
      rules.log !== null && !isSatisfied(rules.log, cosigners),
      'The policy asks for a log that more of its own witnesses cosigned.',
    )
    const isForOffChain = rules.rules.some(({ kind }) => kind !== 'transaction')
    failIf(
      receipt.kind === 'off-chain' && !isForOffChain,
      'The policy refuses it. No rule is for this kind of signature.',
    )
    const found = checkPolicy(rules, toSigned(receipt, content).toRequest(rules))
    if (!found.allowed) throw new StepFailure(`The policy refuses it. ${describeRefusal(rules, found).join(' ')}`)
    return [`Rule ${found.rule + 1} of ${rules.rules.length} allows it; approvals needed: ${found.approvals}.`, found]
  })

  await run('vault-approvals', () => {
    const rules = needs(policy, 'there is no policy to judge by')
    // Shown or not: `parsePolicy` takes no rule for what is signed off the chain that asks for none.
    const isUnapproved = receipt.kind === 'off-chain' && statement.approvals === null
    failIf(isUnapproved, 'No passkey approved it, and every rule for what is signed off the chain asks for one.')
    const { kind, digest, approvals } = toSigned(receipt, content)
    const hash = approvals === undefined ? null : toHex(hashApprovals(approvals))
    failIf(hash !== statement.approvals, 'The approvals are not those that the statement names.')
    const { approvals: required } = needs(verdict, 'no rule says how many are needed')
    const found = checkApprovals(
      { verifyEs256 },
      {
        policy: rules,
        vaultAddress: statement.address,
        kind,
        digest: fromHex(digest.slice(2)),
        approvals: approvals ?? [],
        required,
        nowMs: new Date(statement.signedAt).getTime(),
      },
    )
    if (!found.valid) throw new StepFailure(describeApprovalsFault(found))
    return [`Passkeys that approved: ${approvals?.length ?? 0} of ${rules.approvers.length}.`, undefined]
  })
  return policy
}

type SignedByVault = {
  kind: PolicyRequest['kind']
  digest: Hex
  approvals: readonly Approval[] | undefined
  /** As the engine is asked. A schedule takes the time from the receipt's sample, if one of the policy's own sources signed it. */
  toRequest(policy: Policy): PolicyRequest
}

/** What the rules are about. Of an off-chain signature only its owner can show it. */
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
  if (content === undefined) {
    throw new StepSkip(
      'Not judged: what was signed is not shown. Its owner can show it, with who approved, by an opening.',
    )
  }
  const { kind, digest } = content
  return {
    kind,
    digest,
    // In their one form, or `hashApprovals` refuses them.
    approvals: content.approvals as readonly Approval[] | undefined,
    toRequest: () => pickContent(content),
  }
}
