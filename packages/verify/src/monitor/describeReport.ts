import type { Conclusion } from '../conclude.ts'
import { type Finding, type MonitorReport, type Severity, severities } from './report.ts'

/** A report in words, for the command line and the page. */
export type ReportWords = {
  headline: string
  findings: readonly { severity: Severity; text: string }[]
  /** What no look at a chain can show. */
  unseen: string
}

const UNSEEN =
  'Not seen here: what leaves no trace on this chain, such as signed messages and typed data, transactions and authorizations that nobody sent, and other chains. Only a log of all signatures could show those. The node is believed.'

const CONCLUSIONS: Readonly<Partial<Record<Conclusion, string>>> = {
  mock: 'it is of simulated hardware',
  'unknown-code': 'it is of code that you gave no anchor for',
  late: 'its event came too long after the signing',
  unbounded: 'no event bounds its time',
  incomplete: 'a part of its evidence could not be judged',
}

export function describeReport(report: MonitorReport): ReportWords {
  return {
    headline: toHeadline(report),
    findings: report.findings.map((finding) => ({
      severity: severities[finding.kind],
      text: describeFinding(finding),
    })),
    unseen: UNSEEN,
  }
}

function toHeadline({ conclusion, proven, nonce, fromNonce, completeTo, findings }: MonitorReport): string {
  const total = nonce - fromNonce
  const explained = findings.filter(({ kind }) => kind === 'used-by-code').length
  const since = fromNonce === 0 ? '' : ` from nonce ${fromNonce} on`
  const counted =
    total === 0
      ? `There is no transaction${since || ' yet'}`
      : `${proven} of ${total - explained} ${total - explained === 1 ? 'transaction has' : 'transactions have'} a proof${since}`
  if (conclusion === 'complete') return `${counted}; complete up to nonce ${completeTo}.`
  const sure = `no gap up to nonce ${completeTo}`
  if (conclusion === 'used-elsewhere') return `The key is used elsewhere. ${counted}; ${sure}.`
  return `Not complete. ${counted}; ${sure}.`
}

function describeFinding(finding: Finding): string {
  const { kind, txHash, blockNumber, conclusion, detail } = finding
  const at = toPlace(finding)
  const what = txHash === undefined ? '' : ` (${txHash}${blockNumber === undefined ? '' : `, block ${blockNumber}`})`
  const because = detail === undefined ? '' : `: ${detail}`
  switch (kind) {
    case 'no-receipt':
      return `${at} was used without a receipt${what}: the key is used elsewhere${detail === undefined ? '' : `, and the node does not show by what (${detail})`}.`
    case 'receipt-failed':
      return `${at} has a receipt that does not hold${what}${because}. The key may be used elsewhere.`
    case 'awaited':
      return `${at} has no receipt yet${what}. If none comes, the key is used elsewhere.`
    case 'receipt-unavailable':
      return `${at} has a receipt that could not be fetched${what}${because}.`
    case 'receipt-not-accepted':
      return `${at} has a receipt that was not accepted${what}: ${CONCLUSIONS[conclusion ?? 'incomplete'] ?? conclusion}${detail === undefined ? '' : ` (${detail})`}.`
    case 'not-shown':
      return `${at} was used, and this node does not show by what${because}. Ask a node that keeps the state of old blocks.`
    case 'not-judged':
      return `${at} not looked at yet${because}.`
    case 'authorization':
      return `${at} was used by an authorization of code (EIP-7702), not by a transaction${what}.`
    case 'used-by-code':
      return `${at} was used in block ${blockNumber} by code on the account, with no signature of its key.`
    case 'code':
      return `The account runs code${detail === undefined ? '' : ` of ${detail} (EIP-7702)`}. It can move all that the account holds, without a signature of its key.`
  }
}

function toPlace({ kind, nonces }: Finding): string {
  if (nonces === undefined) return 'The account'
  const [first, last] = nonces
  const name = first === last ? `Nonce ${first}` : `Nonces ${first} to ${last}`
  return kind === 'not-judged' ? `${name}:` : name
}
