import { type Approval, assertApprovals, describePolicy, type Policy } from '@countersign/policy'
import {
  type AddressSubject,
  type AuthorizationSubject,
  nameChain,
  nameCoin,
  type OpeningContent,
  ServiceError,
  type TxMetadata,
  toChecksumAddress,
  toCoins,
} from '@countersign/protocol'
import { type AnyReceipt, ATTESTATION_V2, type Logged, nameSignature, type SignatureName } from '@countersign/receipt'
import { type ContentWords, describeContent, type Fact } from './describeContent.ts'
import { toPrintable } from './toPrintable.ts'
import type { Outcome } from './verify.ts'

/** How a reader writes a time of UTC: the command line as it is, a page in the visitor's own zone. */
export type SignedReader = { toTime?: (time: string) => string }

type Name = SignatureName & { time: string }

type Judged = Pick<Outcome, 'verdict' | 'isMockRefused' | 'isKnownCode'>

type Shown = Judged & {
  receipt: AnyReceipt
  content: OpeningContent | undefined
  policy?: Policy | undefined
  logged?: Logged | undefined
}

/**
 * What the wallet signed, as far as the receipt and an opening show it, under which rules, where it is a vault, and where it is logged.
 * Where the evidence does not show it, the sentence says that the receipt does.
 */
export function describeSigned(shown: Shown, { toTime = (time) => time }: SignedReader = {}): ContentWords {
  const words = describeKind(shown, toTime)
  const facts = [...words.facts, ...describeVault(shown), ...describeLogged(shown.logged, toTime)]
  const sentence = isEvident(shown) ? words.sentence : `This is only what the receipt says: ${words.sentence}`
  return { ...words, sentence, facts }
}

function describeKind({ receipt, content }: Shown, toTime: (time: string) => string): ContentWords {
  const bare = nameSignature(receipt)
  const name = { ...bare, from: toChecksumAddress(bare.from), time: toTime(bare.signedAt) }
  if (!('kind' in receipt)) return describeTransaction(receipt.transaction, name)
  switch (receipt.kind) {
    case 'transaction':
      return describeTransaction(receipt.subject, name)
    case 'authorization':
      return describeAuthorization(receipt.subject, name)
    case 'off-chain':
      return describeOffChain(name, content)
    case 'address':
      return describeAddress(receipt.subject, name)
  }
}

/** Above it. */
export function nameSigned(judged: Judged): string {
  return isEvident(judged) ? 'What was signed' : 'What the receipt says was signed'
}

/** Anybody can write a receipt that names somebody's wallet. Mock evidence that is allowed is judged as hardware is. */
function isEvident({ verdict, isMockRefused, isKnownCode }: Judged): boolean {
  if (verdict === 'mock') return isKnownCode && !isMockRefused
  return verdict === 'verified' || verdict === 'late' || verdict === 'unbounded'
}

function describeTransaction({ to, value, data }: TxMetadata, name: Name): ContentWords {
  const { txHash, chainId, from, time } = name
  const amount = `${toCoins(value)} ${nameCoin(chainId)}`
  const recipient = toChecksumAddress(to)
  const dataLength = (data.length - 2) / 2
  const isCall = dataLength > 0
  const size = `${dataLength} ${dataLength === 1 ? 'byte' : 'bytes'}`
  return {
    title: isCall ? `A call of a contract, with ${amount}` : `A payment of ${amount}`,
    sentence: `To ${recipient} on ${nameChain(chainId)}${isCall ? `, with ${size} of data` : ''}. The wallet ${from} signed it on ${time}.`,
    warnings: [],
    facts: [
      { name: 'Amount', value: amount },
      { name: 'From', value: from },
      { name: 'To', value: recipient },
      ...(isCall ? [{ name: 'Data', value: `${size}: it calls a contract` }] : []),
      toChainFact(chainId),
      toTimeFact(name),
      { name: 'Transaction', value: txHash },
    ],
  }
}

function describeAuthorization({ address, chainId, nonce }: AuthorizationSubject, name: Name): ContentWords {
  const { from, time } = name
  const code = toChecksumAddress(address)
  const facts = [
    { name: 'Wallet', value: from },
    { name: 'Code', value: code },
    toChainFact(chainId),
    { name: 'Nonce', value: String(nonce) },
    toTimeFact(name),
  ]
  // EIP-7702, "Behavior": an authorization of the zero address clears the account's code.
  if (BigInt(address) === 0n) {
    return {
      title: 'An authorization of no code',
      sentence: `The wallet ${from} authorized no code to act for it, on ${nameChain(chainId)} (EIP-7702). That ends whatever delegation it had there. It signed on ${time}.`,
      warnings: [],
      facts,
    }
  }
  return {
    title: 'An authorization of code',
    sentence: `The wallet ${from} authorized the code at ${code} to act for it, on ${nameChain(chainId)} (EIP-7702). It signed on ${time}.`,
    warnings: [
      'That code can move everything that the wallet has on this chain, until another authorization replaces it.',
    ],
    facts,
  }
}

function describeOffChain(name: Name, content: OpeningContent | undefined): ContentWords {
  const { from, time } = name
  const facts: Fact[] = [{ name: 'Wallet', value: from }, toTimeFact(name)]
  const sentence = `The wallet ${from} signed something on ${time}.`
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

function describeAddress({ policy }: AddressSubject, name: Name): ContentWords {
  const { from, time } = name
  const whose = policy === null ? 'It is a wallet without rules.' : 'It is a vault, and belongs to its rules for ever.'
  return {
    title: policy === null ? 'The address of a wallet' : 'The address of a vault',
    sentence: `On ${time} the enclave stated that it has the key of ${from}. ${whose} Nothing was signed with that key.`,
    warnings: [],
    facts: [{ name: 'Address', value: from }, toTimeFact(name, 'Stated')],
  }
}

/** The name is ours, and the number is what was signed. */
function toChainFact(chainId: number): Fact {
  const name = nameChain(chainId)
  const number = `chain ${chainId}`
  return { name: 'Chain', value: name.toLowerCase() === number ? String(chainId) : `${name} (${number})` }
}

/** As the receipt states it, beside what the reader makes of it. */
function toTimeFact({ time, signedAt }: Name, name = 'Signed'): Fact {
  return { name, value: time === signedAt ? signedAt : `${time} (${signedAt})` }
}

/**
 * The rules of the vault that signed, and who approved; nothing for a wallet without rules. `policy` is there where it is the one in
 * the statement. Whether it allows what was signed, and the approvals hold, is for the steps to say.
 */
function describeVault(shown: {
  receipt: AnyReceipt
  content: OpeningContent | undefined
  policy?: Policy | undefined
}): Fact[] {
  const { receipt, content, policy } = shown
  if (receipt.version !== ATTESTATION_V2 || receipt.signer.statement.policy === null) return []
  const hash = { name: 'Policy', value: receipt.signer.statement.policy }
  if (policy === undefined) return [hash]
  const { summary, rules, notes } = describePolicy(policy)
  return [
    { name: 'Rules', value: summary },
    ...rules.map((value, index) => ({ name: `Rule ${index + 1}`, value })),
    ...notes.map((value) => ({ name: 'Note', value })),
    ...describeApprovers(policy, receipt.kind === 'off-chain' ? content?.approvals : receipt.approvals),
    hash,
  ]
}

/** By their places among the approvers, from 1 on. Nothing is said of a list that cannot be read. */
function describeApprovers({ approvers }: Policy, approvals: readonly unknown[] = []): Fact[] {
  return readApprovals(approvals).map(({ approver }) => {
    const where = approvers[approver]?.rpId
    const value = `passkey ${approver + 1} of ${approvers.length}${where === undefined ? '' : `, at ${where}`}`
    return { name: 'Approved by', value }
  })
}

function readApprovals(approvals: readonly unknown[]): readonly Approval[] {
  try {
    const list = [...approvals]
    assertApprovals(list)
    return list
  } catch (error) {
    if (error instanceof ServiceError) return []
    throw error
  }
}

/** Where the signature is in a log, and who cosigned it; nothing where that is not proved. */
function describeLogged(logged: Logged | undefined, toTime: (time: string) => string): Fact[] {
  if (logged === undefined) return []
  const { origin, index, size, cosigners, witnesses, quorum, cosignedAt } = logged
  return [
    { name: 'Log', value: `entry ${index} of ${toPrintable(origin)}, in a tree of ${size}` },
    { name: 'Witnesses', value: `${cosigners.length} of ${witnesses} cosigned it; ${quorum} are enough` },
    { name: 'Cosigned', value: `by ${toTime(cosignedAt)}, by the witnesses’ own clocks` },
  ]
}
