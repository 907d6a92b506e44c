import { type Approval, assertApprovals, describePolicy, type Policy } from '@countersign/policy'
import {
  type AddressSubject,
  type AuthorizationSubject,
  nameChain,
  nameCoin,
  type OpeningContent,
  type OwnerIdentity,
  type RevocationSubject,
  ServiceError,
  type TxMetadata,
  toChecksumAddress,
  toCoins,
  type VaultBudget,
} from '@countersign/protocol'
import { type AnyReceipt, ATTESTATION_V2, type Logged, nameSignature, type SignatureName } from '@countersign/receipt'
import { type ContentWords, describeContent, type Fact } from './describeContent.ts'
import { toPrintable } from './toPrintable.ts'
import type { Outcome } from './verify.ts'

/** Formats a UTC time, such as in the visitor's time zone. */
export type SignedReader = { toTime?: (time: string) => string }

type Name = SignatureName & { time: string }

type CheckedOutcome = Pick<Outcome, 'verdict' | 'isMockRefused' | 'isKnownCode'>

type SignedContent = CheckedOutcome & {
  receipt: AnyReceipt
  content: OpeningContent | undefined
  /** Of an address, if an opening shows it. */
  owner?: OwnerIdentity | undefined
  policy?: Policy | undefined
  logged?: Logged | undefined
}

/**
 * Describes the signed content, the rules of a vault, and the log entry, as far as receipt and opening show them. If the evidence does not
 * prove the content, the sentence attributes it to the receipt.
 */
export function describeSigned(signed: SignedContent, { toTime = (time) => time }: SignedReader = {}): ContentWords {
  const words = describeKind(signed, toTime)
  const facts = [...words.facts, ...describeVault(signed), ...describeLogEntry(signed.logged, toTime)]
  const sentence = isEvident(signed)
    ? words.sentence
    : `This is not proven, only stated in the receipt: ${words.sentence}`
  return { ...words, sentence, facts }
}

function describeKind({ receipt, content, owner }: SignedContent, toTime: (time: string) => string): ContentWords {
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
      return describeAddress(receipt.subject, name, owner)
    case 'revocation':
      return describeRevocation(receipt.subject, name)
  }
}

export function nameSigned(outcome: CheckedOutcome): string {
  return isEvident(outcome) ? 'What was signed' : 'Stated in the receipt'
}

/** Anyone can write a receipt that names someone else's wallet. Accepted mock evidence counts like hardware. */
function isEvident({ verdict, isMockRefused, isKnownCode }: CheckedOutcome): boolean {
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
    title: isCall ? `A contract call with ${amount}` : `A payment of ${amount}`,
    sentence: `To ${recipient} on ${nameChain(chainId)}${isCall ? `, with ${size} of data` : ''}. The wallet ${from} signed it on ${time}.`,
    warnings: [],
    facts: [
      { name: 'Amount', value: amount },
      { name: 'From', value: from },
      { name: 'To', value: recipient },
      ...(isCall ? [{ name: 'Data', value: `${size} (contract call)` }] : []),
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
      title: 'Removal of a delegation',
      sentence: `On ${time}, the wallet ${from} signed an authorization that removes its delegation on ${nameChain(chainId)} (EIP-7702).`,
      warnings: [],
      facts,
    }
  }
  return {
    title: 'Delegation to code',
    sentence: `On ${time}, the wallet ${from} authorized the code at ${code} to act for it on ${nameChain(chainId)} (EIP-7702).`,
    warnings: ['This code can move all of the wallet’s assets on this chain until another authorization replaces it.'],
    facts,
  }
}

function describeOffChain(name: Name, content: OpeningContent | undefined): ContentWords {
  const { from, time } = name
  const facts: Fact[] = [{ name: 'Wallet', value: from }, toTimeFact(name)]
  const sentence = `The wallet ${from} signed a message or typed data on ${time}.`
  if (content === undefined) {
    return {
      title: 'Off-chain signature',
      sentence: `${sentence} Only its owner can show the content, with an opening.`,
      warnings: [],
      facts,
    }
  }
  const words = describeContent(content, { wallet: from })
  return { ...words, sentence: `${sentence} ${words.sentence}`, facts: [...facts, ...words.facts] }
}

function describeAddress({ policy }: AddressSubject, name: Name, owner: OwnerIdentity | undefined): ContentWords {
  const { from, time } = name
  const whose =
    owner === undefined ? 'Only its owner can show whose it is, with an opening.' : describeOwner(from, owner)
  const kind = policy === null ? 'It is a wallet without rules.' : 'It is a vault, and its rules are permanent.'
  return {
    title: policy === null ? 'The address of a wallet' : 'The address of a vault',
    sentence: `On ${time}, the enclave stated that it has the key of ${from}. ${kind} The key itself signed nothing. ${whose}`,
    warnings: [],
    facts: [{ name: 'Address', value: from }, ...toOwnerFacts(owner), toTimeFact(name, 'Stated')],
  }
}

function describeRevocation({ key }: RevocationSubject, name: Name): ContentWords {
  const { from, time } = name
  return {
    title: 'A revoked agent',
    sentence: `On ${time}, the enclave revoked an agent of the vault ${from}. It accepts no more approvals by the agent’s key. The vault’s key itself signed nothing.`,
    warnings: ['Payments that this agent approved before may still be published.'],
    facts: [{ name: 'Vault', value: from }, { name: 'Agent key', value: key }, toTimeFact(name, 'Revoked')],
  }
}

/** Who an address belongs to, in one sentence. */
export function describeOwner(address: string, owner: OwnerIdentity): string {
  return `${toChecksumAddress(address)} belongs to ${nameOwner(owner)}.`
}

/** An e-mail address can pass to someone else. The subject can't. */
function nameOwner({ issuer, subject, email }: OwnerIdentity): string {
  return toPrintable(`${email ?? `the user ${JSON.stringify(subject)}`} at ${issuer}`)
}

function toOwnerFacts(owner: OwnerIdentity | undefined): Fact[] {
  if (owner === undefined) return [{ name: 'Owner', value: 'sealed' }]
  const subject = { name: 'Subject', value: toPrintable(owner.subject) }
  return [{ name: 'Owner', value: nameOwner(owner) }, subject]
}

/** Adds the number, because only the number was signed. */
function toChainFact(chainId: number): Fact {
  const name = nameChain(chainId)
  const number = `chain ${chainId}`
  return { name: 'Chain', value: name.toLowerCase() === number ? String(chainId) : `${name} (${number})` }
}

/** The formatted time, with the receipt's own spelling. */
function toTimeFact({ time, signedAt }: Name, name = 'Signed'): Fact {
  return { name, value: time === signedAt ? signedAt : `${time} (${signedAt})` }
}

/**
 * The rules of the vault and its approvals. `policy` is set only if it matches the statement. The verification steps check whether it allows
 * the signature.
 */
function describeVault(signed: {
  receipt: AnyReceipt
  content: OpeningContent | undefined
  policy?: Policy | undefined
}): Fact[] {
  const { receipt, content, policy } = signed
  if (receipt.version !== ATTESTATION_V2 || receipt.signer.statement.policy === null) return []
  const hash = { name: 'Policy', value: receipt.signer.statement.policy }
  if (policy === undefined) return [hash]
  const { summary, rules, notes } = describePolicy(policy)
  return [
    { name: 'Rules', value: summary },
    ...rules.map((value, index) => ({ name: `Rule ${index + 1}`, value })),
    ...notes.map((value) => ({ name: 'Note', value })),
    ...describeApprovers(policy, receipt.kind === 'off-chain' ? content?.approvals : receipt.approvals),
    ...describeBudget(policy, receipt.kind === 'transaction' ? receipt.subject.budget : content?.budget),
    hash,
  ]
}

/** Names approvers by their position, from 1. An unreadable list of approvals is empty. */
function describeApprovers({ approvers }: Policy, approvals: readonly unknown[] = []): Fact[] {
  return readApprovals(approvals).map(({ approver }) => {
    const known = approvers[approver]
    const where = known?.type === 'passkey' ? `, at ${known.rpId}` : ''
    const name = known?.type === 'key' ? 'agent key' : 'passkey'
    const value = `${name} ${approver + 1} of ${approvers.length}${where}`
    return { name: 'Approved by', value }
  })
}

/** What the payment was counted as, with what is left. Amounts of tokens are in their smallest unit. */
function describeBudget({ budgets = [] }: Policy, counted: VaultBudget | undefined): Fact[] {
  return (counted?.items ?? []).flatMap(({ budget: index, before, after }) => {
    const budget = budgets[index]
    if (budget === undefined) return []
    const { chainId, token, limit } = budget
    const toAmount = (value: bigint) => (token === null ? toCoins(String(value)) : String(value))
    const [spent, paid] = [BigInt(after), BigInt(after) - BigInt(before)]
    const left = `${toAmount(BigInt(limit) - spent)} of ${toAmount(BigInt(limit))} left`
    const unit = token === null ? `in ${nameCoin(chainId)}` : `in the smallest unit of ${token}`
    const value = `${toAmount(paid)} counted, ${left}, ${unit}`
    return [{ name: `Budget ${index + 1}`, value: counted?.isRepeated ? `${value} (counted before)` : value }]
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

function describeLogEntry(logged: Logged | undefined, toTime: (time: string) => string): Fact[] {
  if (logged === undefined) return []
  const { origin, index, size, cosigners, witnesses, quorum, cosignedAt } = logged
  return [
    { name: 'Log', value: `entry ${index} of ${toPrintable(origin)}, tree size ${size}` },
    { name: 'Witnesses', value: `${cosigners.length} of ${witnesses} cosigned (${quorum} required)` },
    { name: 'Cosigned', value: `by ${toTime(cosignedAt)}, according to the witnesses’ clocks` },
  ]
}
