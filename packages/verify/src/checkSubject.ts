import { type AnyReceipt, nameSignature, type Step, type StepId } from '@countersign/receipt'
import type { NamedTransaction } from './loadReceipt.ts'

/** `subject` is the verifier's own: whether the receipt is about the signature that the reader asked about. */
export type VerifierStep = Omit<Step, 'id'> & { id: StepId | 'subject' }

export const SUBJECT_TITLE = 'The receipt is about the signature that was asked for'

/**
 * A pointer may lead to a genuine receipt of something else: an event under one transaction's hash to the receipt of
 * another, or a proof page that shows one and links the other. Undefined where no transaction was named.
 */
export function checkSubject(asked: NamedTransaction | undefined, receipt: AnyReceipt): VerifierStep | undefined {
  if (asked === undefined) return undefined
  const transaction = nameSignature(receipt)
  const { txHash, chainId = transaction.chainId, walletAddress = transaction.from } = asked
  const isSame = transaction.txHash === txHash && transaction.chainId === chainId && transaction.from === walletAddress
  const step = { id: 'subject', title: SUBJECT_TITLE } as const
  if (isSame) return { ...step, status: 'pass', detail: `Both are about ${txHash}.` }
  return {
    ...step,
    status: 'fail',
    detail: `Asked for was ${txHash} of ${walletAddress} on chain ${chainId}; the receipt is about ${transaction.txHash} of ${transaction.from} on chain ${transaction.chainId}.`,
  }
}
