import type { Conclusion } from '../conclude.ts'

/**
 * What the monitor has to say of one use of a nonce, of the account, of an entry of a log, or of a log:
 * - `no-receipt`: something of this wallet is on the chain, and no event names a receipt for it
 * - `receipt-failed`: an event names a receipt, and it is another's or does not hold
 * - `awaited`: there is no receipt yet, and it may still come
 * - `receipt-unavailable`: the receipt, or what it is judged by, could not be fetched, or more are named for it than one look judges
 * - `receipt-not-accepted`: nothing failed, but the receipt does not say enough: see `conclusion`
 * - `not-shown`: the node does not show what used the nonce
 * - `not-judged`: more is left than one look may ask for
 * - `authorization`: an EIP-7702 authorization used the nonce, or is one of several in its block that may have, and has its receipt
 * - `used-by-code`: nothing in the block is signed with this nonce, and code on the account may have used it
 * - `code`: the account has code
 * - `not-logged`: a signature that has a receipt is in no log, though there was one
 * - `hidden`: a log has a signature that no receipt is of
 * - `entry-awaited`: the same, and the receipt may still come
 * - `entry-unmatched`: the same, and it may be one of the receipts that could not be read
 * - `unresolved`: the same of an enclave that stopped, or that says itself that the receipt may be lost
 * - `log-lies`: a log shows two histories, says what cannot be, or is not cosigned
 * - `log-withholds`: a log does not show what it has
 * - `log-stale`: no quorum of witnesses has cosigned a log for an hour
 * - `log-unavailable`: a log could not be asked
 * - `witness-unavailable`: a witness could not be asked
 * - `witness-contradicts`: a witness cosigned what the log's key did not sign: it lies, or the service names a false key
 * - `log-not-checked`: there is a log, or may be one, and not enough is known to read it
 * - `log-unused`: nothing was released under an origin that the settings name: so many witnesses state that they cosigned nothing
 * - `logs-unknown`: logs were read, and no accepted receipt names all logs of the enclave
 * - `key-unknown`: a log has signatures, and no accepted receipt names the key of this wallet
 * - `before-log`: signatures that are older than the log
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
  | 'not-logged'
  | 'hidden'
  | 'entry-awaited'
  | 'entry-unmatched'
  | 'unresolved'
  | 'log-lies'
  | 'log-withholds'
  | 'log-stale'
  | 'log-unavailable'
  | 'witness-unavailable'
  | 'witness-contradicts'
  | 'log-not-checked'
  | 'log-unused'
  | 'logs-unknown'
  | 'key-unknown'
  | 'before-log'

export type Finding = {
  kind: FindingKind
  /** The first and the last nonce that it is about. */
  nonces?: readonly [first: number, last: number]
  /** Of the transaction, or the name of the authorization in its event. */
  txHash?: string
  blockNumber?: number
  /** What is wrong with a receipt. */
  conclusion?: Conclusion
  /** Of the log. */
  origin?: string
  /** Of the entry in it. */
  index?: number
  /** 32 bytes of hex: that of the statement. */
  leaf?: string
  /** How many it stands for. */
  count?: number
  /** Keys of witnesses that did not state that they cosigned nothing of the log. */
  witnesses?: readonly string[]
  /** More, for who looks into it. */
  detail?: string
}

/** What a finding means for the whole. */
export type Severity = 'alarm' | 'gap' | 'warning' | 'note'

/** A log that was read to its end. */
export type LogReport = {
  origin: string
  size: number
  /** When a quorum of its witnesses had cosigned that. */
  cosignedAt: Date
  /** Signatures of this wallet's key in it, how many of them have a receipt, and how many were erased before anybody got them. Undefined where no accepted receipt names the key. */
  entries: number | undefined
  proven: number
  dropped: number
}

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
  'not-logged': 'alarm',
  hidden: 'alarm',
  'entry-awaited': 'gap',
  'entry-unmatched': 'gap',
  unresolved: 'gap',
  'log-lies': 'alarm',
  'log-withholds': 'gap',
  'log-stale': 'gap',
  'log-unavailable': 'gap',
  'witness-unavailable': 'warning',
  'witness-contradicts': 'gap',
  'log-not-checked': 'gap',
  'log-unused': 'note',
  'logs-unknown': 'gap',
  'key-unknown': 'gap',
  'before-log': 'note',
}

/** Worst first: `unresolved` where nothing else is open. */
export const monitorConclusions = [
  'used-elsewhere',
  'hidden',
  'log-lies',
  'incomplete',
  'unresolved',
  'complete',
] as const

export type MonitorConclusion = (typeof monitorConclusions)[number]

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
  /** Undefined where the service has no log, or none was looked at. */
  logs: readonly LogReport[] | undefined
  conclusion: MonitorConclusion
  findings: readonly Finding[]
}

/** An alarm is one whatever else could not be looked at; and nothing is complete that was not. */
export function concludeReport(findings: readonly Finding[]): MonitorConclusion {
  const found = new Set(findings.map(({ kind }) => toConclusion(kind)))
  return monitorConclusions.find((conclusion) => found.has(conclusion)) ?? 'complete'
}

/** The first nonce whose use is neither proven nor explained; `nonce` where there is none. */
export function findCompleteTo(findings: readonly Finding[], nonce: number): number {
  const open = findings.filter(({ kind }) => kind !== 'authorization' && kind !== 'used-by-code')
  // Not `Math.min(...)`: a log can have more findings than a call may have arguments.
  return open.reduce((first, { nonces }) => Math.min(first, nonces?.[0] ?? nonce), nonce)
}

function toConclusion(kind: FindingKind): MonitorConclusion {
  if (kind === 'hidden' || kind === 'log-lies' || kind === 'unresolved') return kind
  if (severities[kind] === 'alarm') return 'used-elsewhere'
  return severities[kind] === 'gap' ? 'incomplete' : 'complete'
}
