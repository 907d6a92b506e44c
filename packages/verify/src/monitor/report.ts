import { describeFinding, type Finding, type FindingKind, type Severity, toSeverity } from './findings.ts'

/** A fully read log. */
export type LogReport = {
  origin: string
  size: number
  /** When a quorum of its witnesses had cosigned this size. */
  cosignedAt: Date
  /** Signatures by this wallet's key in the log, how many have a receipt, and how many were erased before release. Undefined if no accepted receipt names the key. */
  entries: number | undefined
  proven: number
  dropped: number
}

/** The severity of a report, the beginning of its headline, and the exit code of the command line. Scripts depend on the exit codes. */
type Verdict = { severity: 'alarm' | 'not-listed' | 'gap' | 'complete'; title: string; exitCode: number }

/** By conclusion, worst first: `unresolved` if nothing else is open. Headline, exit code, webhook and page all follow from it. */
export const monitorVerdicts = {
  'used-elsewhere': { severity: 'alarm', title: 'The key is used elsewhere. ', exitCode: 1 },
  'receipt-failed': { severity: 'alarm', title: 'A receipt does not verify. ', exitCode: 1 },
  hidden: { severity: 'alarm', title: 'Something is hidden. ', exitCode: 4 },
  'log-lies': { severity: 'alarm', title: 'The log lies. ', exitCode: 5 },
  'not-in-manifest': { severity: 'not-listed', title: 'Not in your manifest. ', exitCode: 7 },
  incomplete: { severity: 'gap', title: 'Not complete. ', exitCode: 3 },
  unresolved: { severity: 'gap', title: 'A signature is unresolved. ', exitCode: 6 },
  complete: { severity: 'complete', title: '', exitCode: 0 },
} as const satisfies Readonly<Record<string, Verdict>>

export type MonitorConclusion = keyof typeof monitorVerdicts

export type MonitorReport = {
  address: string
  chainId: number
  /** The last checked block. */
  head: { number: number; hash: string; time: Date }
  /** The first checked nonce. */
  fromNonce: number
  /** The account's next nonce at the head. */
  nonce: number
  /** The checked nonces with an accepted receipt. */
  proven: number
  /** All uses of lower nonces, from `fromNonce` on, are proven or explained. */
  completeTo: number
  /** Receipts of this wallet for signatures that are not on this chain: off-chain signatures, other chains, unsent transactions. */
  otherReceipts: number
  /** Undefined if the service has no log, or none was checked. */
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
  return (Object.keys(monitorVerdicts) as MonitorConclusion[]).find((conclusion) => found.has(conclusion))
}

/** The first nonce with an unexplained use; `nonce` if there is none. */
export function findCompleteTo(findings: readonly Finding[], nonce: number): number {
  const open = findings.filter(({ kind }) => kind !== 'authorization' && kind !== 'used-by-code')
  // Not `Math.min(...)`: a log can have more findings than a call can have arguments.
  return open.reduce((first, { nonces }) => Math.min(first, nonces?.[0] ?? nonce), nonce)
}

function toConclusion(kind: FindingKind): MonitorConclusion {
  if (kind === 'receipt-failed' || kind === 'hidden' || kind === 'log-lies' || kind === 'unresolved') return kind
  if (kind === 'anchor-contradicts') return 'log-lies'
  switch (toSeverity(kind)) {
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

/** A report in words, for the command line and the page. */
export type ReportWords = {
  headline: string
  findings: readonly { severity: Severity; text: string }[]
  /** One line per log. */
  logs: readonly string[]
  /** The limits of this report. */
  unseen: string
}

const UNSEEN =
  'Not checked: signatures that leave no trace on this chain, such as signed messages and typed data, unsent transactions and authorizations, and other chains. Only a log of all signatures would show those. The report trusts the node.'
const UNSEEN_WITH_LOG =
  'Not checked: signatures by other code than the enclave’s with the root secret, if they were not sent to this chain. The report trusts the node. It also trusts that fewer witnesses collude than two quorums have in common.'

export function describeReport(report: MonitorReport): ReportWords {
  return {
    headline: toHeadline(report),
    findings: report.findings.map((finding) => ({
      severity: toSeverity(finding.kind),
      text: describeFinding(finding),
    })),
    logs: (report.logs ?? []).map(describeLog),
    unseen: report.logs === undefined || report.logs.length === 0 ? UNSEEN : UNSEEN_WITH_LOG,
  }
}

function toHeadline(report: MonitorReport): string {
  const { conclusion, proven, nonce, fromNonce, completeTo, findings, logs = [] } = report
  const total = nonce - fromNonce
  const explained = findings.filter(({ kind }) => kind === 'used-by-code').length
  const since = fromNonce === 0 ? '' : ` from nonce ${fromNonce} on`
  const counted =
    total === 0
      ? `There is no transaction${since || ' yet'}`
      : `${proven} of ${total - explained} ${total - explained === 1 ? 'transaction has' : 'transactions have'} a proof${since}`
  const sizes = logs.map(({ size, origin }) => (logs.length === 1 ? `size ${size}` : `size ${size} of ${origin}`))
  const upTo = [...sizes, `nonce ${completeTo}`].join(' and ')
  const until = conclusion === 'complete' ? `complete up to ${upTo}` : `no gap up to nonce ${completeTo}`
  return `${monitorVerdicts[conclusion].title}${counted}; ${until}.`
}

function describeLog({ origin, size, cosignedAt, entries, proven, dropped }: LogReport): string {
  const has = `The log ${origin} has ${size} entries, cosigned ${cosignedAt.toISOString()}`
  if (entries === undefined) return `${has}. It is unknown which belong to this wallet.`
  const found =
    entries === 0
      ? 'no signature of this wallet'
      : `${entries} ${entries === 1 ? 'signature' : 'signatures'} of this wallet`
  const parts =
    entries === 0 ? '' : `, ${proven} with a proof${dropped === 0 ? '' : `, ${dropped} erased before anybody got them`}`
  return `${has}: ${found}${parts}.`
}
