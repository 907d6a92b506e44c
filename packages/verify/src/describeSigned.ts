import type { AuthorizationSubject, OpeningContent, TxMetadata } from '@countersign/protocol'
import { type AnyReceipt, nameSignature, type SignatureName } from '@countersign/receipt'
import type { ContentWords, Fact } from './contentWords.ts'
import { describeContent } from './describeContent.ts'

/** What the wallet signed, as far as the receipt and an opening show it. */
export function describeSigned(receipt: AnyReceipt, content: OpeningContent | undefined): ContentWords {
  const name = nameSignature(receipt)
  if (!('kind' in receipt)) return describeTransaction(receipt.transaction, name)
  switch (receipt.kind) {
    case 'transaction':
      return describeTransaction(receipt.subject, name)
    case 'authorization':
      return describeAuthorization(receipt.subject, name)
    case 'off-chain':
      return describeOffChain(name, content)
  }
}

function describeTransaction({ to, value, data }: TxMetadata, name: SignatureName): ContentWords {
  const { txHash, chainId, from, signedAt } = name
  const dataLength = (data.length - 2) / 2
  const call = dataLength === 0 ? 'none' : `${dataLength} ${dataLength === 1 ? 'byte' : 'bytes'}: it calls a contract`
  return {
    title: 'A transaction',
    sentence: `Transaction ${txHash} of ${from} on chain ${chainId}, signed ${signedAt}.`,
    warnings: [],
    facts: [
      { name: 'Transaction', value: txHash },
      { name: 'From wallet', value: from },
      { name: 'To', value: to },
      { name: 'Amount', value: `${toEther(value)} ether` },
      { name: 'Data', value: call },
      { name: 'Chain', value: String(chainId) },
      { name: 'Signed', value: signedAt },
    ],
  }
}

function describeAuthorization(subject: AuthorizationSubject, { from, signedAt }: SignatureName): ContentWords {
  const { address, chainId, nonce } = subject
  return {
    title: 'An authorization of code',
    sentence: `The wallet ${from} authorized the code at ${address} to act for it on chain ${chainId} (EIP-7702), signed ${signedAt}.`,
    warnings: [
      'That code can move everything that the wallet has on this chain, until another authorization replaces it.',
    ],
    facts: [
      { name: 'Wallet', value: from },
      { name: 'Code', value: address },
      { name: 'Chain', value: String(chainId) },
      { name: 'Nonce', value: String(nonce) },
      { name: 'Signed', value: signedAt },
    ],
  }
}

function describeOffChain({ from, signedAt }: SignatureName, content: OpeningContent | undefined): ContentWords {
  const facts: Fact[] = [
    { name: 'Wallet', value: from },
    { name: 'Signed', value: signedAt },
  ]
  const sentence = `The wallet ${from} signed something at ${signedAt}.`
  if (content === undefined) {
    return {
      title: 'Something off the chain',
      sentence: `${sentence} What it was, only its owner can show, with an opening.`,
      warnings: [],
      facts,
    }
  }
  const words = describeContent(content, { wallet: from })
  return { ...words, sentence: `${sentence} ${words.sentence}`, facts: [...facts, ...words.facts] }
}

/** Wei in decimal as ether, to the last digit. */
function toEther(wei: string): string {
  const digits = BigInt(wei).toString().padStart(19, '0')
  const fraction = digits.slice(-18).replace(/0+$/, '')
  return `${digits.slice(0, -18)}${fraction === '' ? '' : `.${fraction}`}`
}
