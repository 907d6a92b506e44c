import type { Conclusion } from '../conclude.ts'

/**
 * What the monitor has to say of one use of a nonce, of the account, of an entry of a log, or of a log:
 * - `no-receipt`: something of this wallet is on the chain, and no event names a receipt for it
 * - `receipt-failed`: an event names a receipt, and it is another's or does not hold
 * - `awaited`: there is no receipt yet, and it may still come
 * - `receipt-unavailable`: the receipt, or what it is judged by, could not be fetched, or more are named for it than one look judges
 * - `receipt-not-listed`: the receipt is genuine, but the reader's manifest does not cover its code, configuration, machine, keys or witnesses
 * - `receipt-not-accepted`: nothing failed, but the receipt does not say enough: see `conclusion`
 * - `not-shown`: the node does not show what used the nonce
 * - `not-judged`: more is left than one look may ask for
 * - `authorization`: an EIP-7702 authorization used the nonce, or is one of several in its block that may have, and has its receipt
 * - `used-by-code`: nothing in the block is signed with this nonce, and code on the account may have used it
 * - `code`: the account has code
 * - `wallet-unknown`: no accepted receipt names this address, so it may not be a wallet of the service
 * - `not-logged`: a signature that has a receipt is in no log, though there was one
 * - `hidden`: a log has a signature that no receipt is of
 * - `entry-awaited`: the same, and the receipt may still come
 * - `entry-unmatched`: the same, and it may be one of the receipts that could not be read
 * - `unresolved`: the same of an enclave that stopped, or that says itself that the receipt may be lost
 * - `log-lies`: a log shows two histories, says what cannot be, or is not cosigned
 * - `log-withholds`: a log does not show what it has
 * - `log-stale`: no quorum of witnesses has cosigned a log for an hour
 * - `log-ahead`: a quorum of witnesses dates a log later than the reader's clock, so it may not be current
 * - `boot-not-listed`: an enclave wrote to a log with a configuration that is not in the reader's manifest
 * - `log-unavailable`: a log could not be asked
 * - `witness-unavailable`: a witness could not be asked
 * - `witness-contradicts`: a witness cosigned what the log's key did not sign: it lies, or the service names a false key
 * - `log-not-checked`: there is or may be a log that could not be checked
 * - `log-unused`: an origin in the settings is unused: enough witnesses state that they cosigned nothing
 * - `logs-unknown`: logs were read, and no accepted receipt names all logs of the enclave
 * - `key-unknown`: a log has signatures, and no accepted receipt names the key of this wallet
 * - `before-log`: signatures that are older than the log
 */
export type FindingKind =
  | 'no-receipt'
  | 'receipt-failed'
  | 'awaited'
  | 'receipt-unavailable'
  | 'receipt-not-listed'
  | 'receipt-not-accepted'
  | 'not-shown'
  | 'not-judged'
  | 'authorization'
  | 'used-by-code'
  | 'code'
  | 'wallet-unknown'
  | 'not-logged'
  | 'hidden'
  | 'entry-awaited'
  | 'entry-unmatched'
  | 'unresolved'
  | 'log-lies'
  | 'log-withholds'
  | 'log-stale'
  | 'log-ahead'
  | 'boot-not-listed'
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
  /** 32 bytes of hex: that of a boot entry. */
  configHash?: string
  /** Keys of witnesses that did not state that they cosigned no more of the log than it shows. */
  witnesses?: readonly string[]
  /** More, for who looks into it. */
  detail?: string
}

/** The effect of a finding on the report. Warnings and notes leave it complete. */
export type Severity = 'alarm' | 'not-listed' | 'gap' | 'warning' | 'note'

/** A log that was read to its end. */
export type LogReport = {
  origin: string
  size: number
  /** When a quorum of its witnesses had cosigned that. */
  cosignedAt: Date
  /** Signatures by this wallet's key in the log, how many have a receipt, and how many were erased before release. Undefined if no accepted receipt names the key. */
  entries: number | undefined
  proven: number
  dropped: number
}

export const severities: Readonly<Record<FindingKind, Severity>> = {
  'no-receipt': 'alarm',
  'receipt-failed': 'alarm',
  awaited: 'gap',
  'receipt-unavailable': 'gap',
  'receipt-not-listed': 'not-listed',
  'receipt-not-accepted': 'gap',
  'not-shown': 'gap',
  'not-judged': 'gap',
  'used-by-code': 'warning',
  code: 'warning',
  'wallet-unknown': 'gap',
  authorization: 'note',
  'not-logged': 'alarm',
  hidden: 'alarm',
  'entry-awaited': 'gap',
  'entry-unmatched': 'gap',
  unresolved: 'gap',
  'log-lies': 'alarm',
  'log-withholds': 'gap',
  'log-stale': 'gap',
  'log-ahead': 'gap',
  'boot-not-listed': 'not-listed',
  'log-unavailable': 'gap',
  'witness-unavailable': 'warning',
  'witness-contradicts': 'gap',
  'log-not-checked': 'gap',
  'log-unused': 'note',
  'logs-unknown': 'gap',
  'key-unknown': 'gap',
  'before-log': 'note',
}

/** The severity of a report, and the exit code of the command line. Scripts depend on the exit codes. */
type Verdict = { severity: 'alarm' | 'not-listed' | 'gap' | 'complete'; exitCode: number }

/** Worst first: `unresolved` if nothing else is open. */
const verdicts = {
  'used-elsewhere': { severity: 'alarm', exitCode: 1 },
  'receipt-failed': { severity: 'alarm', exitCode: 1 },
  hidden: { severity: 'alarm', exitCode: 4 },
  'log-lies': { severity: 'alarm', exitCode: 5 },
  'not-in-manifest': { severity: 'not-listed', exitCode: 7 },
  incomplete: { severity: 'gap', exitCode: 3 },
  unresolved: { severity: 'gap', exitCode: 6 },
  complete: { severity: 'complete', exitCode: 0 },
} as const satisfies Record<string, Verdict>

export type MonitorConclusion = keyof typeof verdicts

/** By conclusion, worst first. Headline, exit code, webhook and page all follow from a report's conclusion. */
export const monitorVerdicts: Readonly<Record<MonitorConclusion, Verdict>> = verdicts

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

/** An alarm counts even if other checks were skipped. A report with skipped checks is never complete. */
export function concludeReport(findings: readonly Finding[]): MonitorConclusion {
  return findWorst(findings.map(({ kind }) => toConclusion(kind))) ?? 'complete'
}

/** Undefined if there is none. */
export function findWorst(conclusions: readonly MonitorConclusion[]): MonitorConclusion | undefined {
  const found = new Set<string>(conclusions)
  return (Object.keys(verdicts) as MonitorConclusion[]).find((conclusion) => found.has(conclusion))
}

/** The first nonce whose use is neither proven nor explained; `nonce` where there is none. */
export function findCompleteTo(findings: readonly Finding[], nonce: number): number {
  const open = findings.filter(({ kind }) => kind !== 'authorization' && kind !== 'used-by-code')
  // Not `Math.min(...)`: a log can have more findings than a call may have arguments.
  return open.reduce((first, { nonces }) => Math.min(first, nonces?.[0] ?? nonce), nonce)
}

function toConclusion(kind: FindingKind): MonitorConclusion {
  if (kind === 'receipt-failed' || kind === 'hidden' || kind === 'log-lies' || kind === 'unresolved') return kind
  switch (severities[kind]) {
    case 'alarm':
      return 'used-elsewhere'
    case 'not-listed':
      return 'not-in-manifest'
    case 'gap':
      return 'incomplete'
    default:
      return 'complete'
  }
}
