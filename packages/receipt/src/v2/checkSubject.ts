import {
  type AttestationReceiptV2,
  type AuthorizationSubject,
  assertAuthorizationAllowed,
  assertStatementV2,
  type EnclaveSettings,
  fromHex,
  hashAuthorization,
  hashSubject,
  type OpeningContent,
  type SignatureKind,
  type StatementV2,
  toAddress,
  toHex,
  toPrefixedHex,
} from '@countersign/protocol'
import { checkTransaction } from '../check/checkTransaction.ts'
import { failIf, type Transcript } from '../check/steps.ts'
import { readBudget } from './checkBudget.ts'
import { checkOpening, checkOwner, checkSignature, refuseOpening } from './checkOpening.ts'

/**
 * opening → digest → signature → tx-hash → statement: the signed content, depending on its kind, and the enclave's statement about it.
 * Returns
 * the content of an opening.
 */
export async function checkSubject(
  transcript: Transcript,
  receipt: AttestationReceiptV2,
  { settings, opening }: { settings: EnclaveSettings | undefined; opening: Uint8Array | undefined },
): Promise<OpeningContent | undefined> {
  const { statement } = receipt.signer
  let content: OpeningContent | undefined
  if (receipt.kind === 'off-chain') {
    content = await checkOpening(transcript, { commitment: receipt.subject.commitment, statement, opening })
  } else {
    if (receipt.kind === 'address') await checkOwner(transcript, receipt.subject, opening)
    else if (opening !== undefined) await refuseOpening(transcript)
    if (receipt.kind === 'transaction') {
      await checkTransaction(transcript, { transaction: receipt.subject, publicKey: statement.publicKey })
    } else if (receipt.kind === 'authorization') {
      await checkAuthorization(transcript, receipt.subject, { statement, settings })
    }
  }

  await transcript.run('statement', () => {
    assertStatementV2(statement)
    const pairs: [string, unknown, unknown][] = [
      ['kind', statement.kind, receipt.kind],
      ['subject', statement.subject, toHex(hashSubject(receipt.subject))],
      ['address', statement.address, toAddress(fromHex(statement.publicKey))],
      ['time of issue', statement.signedAt, receipt.issuedAt],
    ]
    if (receipt.kind === 'transaction') {
      pairs.push(['address', statement.address, receipt.subject.from])
      pairs.push(['time of signing', statement.signedAt, receipt.subject.signedAt])
    }
    if (receipt.kind === 'address' || receipt.kind === 'revocation') {
      pairs.push(['address', statement.address, receipt.subject.address])
      pairs.push(['policy', statement.policy, receipt.subject.policy])
    }
    for (const [what, said, stated] of pairs) failIf(said !== stated, `The statement has another ${what}.`)
    assertRuledAlike(receipt, content)
    const { session } = statement
    const isCookie = session === 'cookie'
    failIf(settings?.sessions === 'bound' && isCookie, 'The settings allow only sessions with a browser key.')
    // The rule decides whether a vault signs without a session, which `vault-rule` checks.
    const needsSession = statement.policy === null || receipt.kind === 'address'
    failIf(session === 'none' && needsSession, 'Only a vault signs without a session.')
    const did = DEEDS[receipt.kind] ?? 'signed'
    const by =
      session === 'none'
        ? 'No session requested it'
        : isCookie
          ? 'A cookie session requested it'
          : `The browser key ${session} requested it`
    return [`Key ${statement.keyId} ${did} at ${statement.signedAt}: ${receipt.kind}. ${by}.`, undefined]
  })
  return content
}

/** What the enclave did with the key, if it signed nothing. */
const DEEDS: { [Kind in SignatureKind]?: string } = {
  address: 'is of this address',
  revocation: 'accepts no more approvals by an agent’s key',
}

/** Whether a vault signed. Statement, receipt and opening must agree. Other steps check the policy and the approvals. */
function assertRuledAlike(receipt: AttestationReceiptV2, content: OpeningContent | undefined) {
  const { signer, policy, approvals, kind } = receipt
  const { statement } = signer
  failIf(statement.policy !== null && policy === undefined, 'The statement names a policy, but this receipt has none.')
  failIf(statement.policy === null && policy !== undefined, 'The receipt has a policy, but the statement names none.')
  const isRuled = statement.policy !== null && kind !== 'address' && kind !== 'revocation'
  failIf(isRuled !== (statement.rule !== null), 'The statement must name a rule exactly if a vault signed.')
  const isApproved = [approvals, content?.approvals].some((list) => list !== undefined)
  failIf(statement.policy === null && isApproved, 'There are approvals, but the statement names no policy.')
  const budget = readBudget(receipt, content)
  failIf(statement.policy === null && budget !== undefined, 'A payment was counted, but the statement names no policy.')
  const isUnasked = statement.policy === null || kind === 'address'
  failIf(statement.approvals !== null && isUnasked, 'The statement names approvals, but no policy requires any.')
}

async function checkAuthorization(
  { run }: Transcript,
  { signature, digest: stated, ...authorization }: AuthorizationSubject,
  { statement, settings }: { statement: StatementV2; settings: EnclaveSettings | undefined },
): Promise<void> {
  await run('digest', () => {
    const digest = toPrefixedHex(hashAuthorization(authorization))
    failIf(digest !== stated, `The fields of the authorization hash to ${digest}, not to the digest.`)
    // The settings, which the quote covers, list the code that the enclave may authorize.
    if (settings !== undefined) assertAuthorizationAllowed(authorization, settings.implementations)
    return [
      `The EIP-7702 authorization of ${authorization.address} on chain ${authorization.chainId} hashes to ${digest}.`,
      undefined,
    ]
  })
  await run('signature', () => [checkSignature({ digest: stated, signature, statement }), undefined])
}
