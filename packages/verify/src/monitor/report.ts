import type { Conclusion } from '../conclude.ts'

/**
 * What the monitor has to say of one use of a nonce, or of the account:
 * - `no-receipt`: something of this wallet is on the chain, and no event names a receipt for it
 * - `receipt-failed`: an event names a receipt, and it is another's or does not hold
 * - `awaited`: there is no receipt yet, and it may still come
 * - `receipt-unavailable`: the receipt, or what it is judged by, could not be fetched
 * - `receipt-not-accepted`: nothing failed, but the receipt does not say enough: see `conclusion`
 * - `not-shown`: the node does not show what used the nonce
 * - `not-judged`: more is left than one look may ask for
 * - `authorization`: an EIP-7702 authorization used the nonce, and has its receipt
 * - `used-by-code`: nothing in the block is signed with this nonce, and code on the account may have used it
 * - `code`: the account has code
 */
export type FindingKind =
  | 'no-receipt'
  | 'receipt-failed'
  | 'awaited'
  | 'receipt-unavailable'
  | 'receipt-not-accepted'
  | 'not-shown'
  | 'not-judged'
  | 'authorization'
  | 'used-by-code'
  | 'code'

export type Finding = {
  kind: FindingKind
  /** The first and the last nonce that it is about. */
  nonces?: readonly [first: number, last: number]
  /** Of the transaction, or the name of the authorization in its event. */
  txHash?: string
  blockNumber?: number
  /** What is wrong with a receipt. */
  conclusion?: Conclusion
  /** More, for who looks into it. */
  detail?: string
}

/** What a finding means for the whole. */
export type Severity = 'alarm' | 'gap' | 'warning' | 'note'

export const severities: Readonly<Record<FindingKind, Severity>> = {
  'no-receipt': 'alarm',
  'receipt-failed': 'alarm',
  awaited: 'gap',
  'receipt-unavailable': 'gap',
  'receipt-not-accepted': 'gap',
  'not-shown': 'gap',
  'not-judged': 'gap',
  'used-by-code': 'warning',
  code: 'warning',
  authorization: 'note',
}

export type MonitorConclusion = 'complete' | 'used-elsewhere' | 'incomplete'

export type MonitorReport = {
  address: string
  chainId: number
  /** What was looked at ends with this block. */
  head: { number: number; hash: string; time: Date }
  /** Signatures with a lower nonce were not looked at. */
  fromNonce: number
  /** The account's own at the head: one more than that of its last transaction. */
  nonce: number
  /** Of the nonces that were looked at, those whose use has a receipt that was accepted. */
  proven: number
  /** All uses of lower nonces, from `fromNonce` on, are proven or explained. */
  completeTo: number
  /** Receipts of this wallet for what is not on this chain: off-chain signatures, other chains, transactions that were never sent. */
  otherReceipts: number
  conclusion: MonitorConclusion
  findings: readonly Finding[]
}

/** An alarm is one whatever else could not be looked at; and nothing is complete that was not. */
export function concludeReport(findings: readonly Finding[]): MonitorConclusion {
  const found = new Set(findings.map(({ kind }) => severities[kind]))
  if (found.has('alarm')) return 'used-elsewhere'
  return found.has('gap') ? 'incomplete' : 'complete'
}
