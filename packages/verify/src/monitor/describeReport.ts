import type { Conclusion } from '../conclude.ts'
import {
  type Finding,
  type LogReport,
  type MonitorConclusion,
  type MonitorReport,
  type Severity,
  severities,
} from './report.ts'

/** A report in words, for the command line and the page. */
export type ReportWords = {
  headline: string
  findings: readonly { severity: Severity; text: string }[]
  /** What was read of each log. */
  logs: readonly string[]
  /** What the look could not show. */
  unseen: string
}

const UNSEEN =
  'Not seen here: what leaves no trace on this chain, such as signed messages and typed data, transactions and authorizations that nobody sent, and other chains. Only a log of all signatures could show those. The node is believed.'
const UNSEEN_WITH_LOG =
  'Not seen here: what code other than the enclave’s would sign with the root secret, where that is not sent to this chain. Believed are the node, and that fewer witnesses lie together than two quorums of them share.'

const HEADLINES: Readonly<Record<Exclude<MonitorConclusion, 'complete'>, string>> = {
  'used-elsewhere': 'The key is used elsewhere.',
  'receipt-failed': 'A receipt does not verify.',
  'not-in-manifest': 'Not in your manifest.',
  hidden: 'Something is hidden.',
  'log-lies': 'The log lies.',
  incomplete: 'Not complete.',
  unresolved: 'A signature is unresolved.',
}

const CONCLUSIONS: Readonly<Partial<Record<Conclusion, string>>> = {
  mock: 'it is of simulated hardware',
  'unknown-code': 'no anchor names its code',
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
  if (conclusion === 'complete') return `${counted}; complete up to ${upTo}.`
  return `${HEADLINES[conclusion]} ${counted}; no gap up to nonce ${completeTo}.`
}

function describeLog({ origin, size, cosignedAt, entries, proven, dropped }: LogReport): string {
  const has = `The log ${origin} has ${size} entries, cosigned ${cosignedAt.toISOString()}`
  if (entries === undefined) return `${has}. It is not known which belong to this wallet.`
  const found =
    entries === 0
      ? 'no signature of this wallet'
      : `${entries} ${entries === 1 ? 'signature' : 'signatures'} of this wallet`
  const parts =
    entries === 0 ? '' : `, ${proven} with a proof${dropped === 0 ? '' : `, ${dropped} erased before anybody got them`}`
  return `${has}: ${found}${parts}.`
}

function describeFinding(finding: Finding): string {
  const { kind, txHash, blockNumber, conclusion, detail } = finding
  const at = toPlace(finding)
  const what = txHash === undefined ? '' : ` (${txHash}${blockNumber === undefined ? '' : `, block ${blockNumber}`})`
  const because = detail === undefined ? '' : `: ${detail}`
  const log = finding.origin === undefined ? 'The log' : `The log ${finding.origin}`
  const entry = `Entry ${finding.index} of the log ${finding.origin}`
  switch (kind) {
    case 'no-receipt':
      return `${at} was used without a receipt${what}: the key is used elsewhere${detail === undefined ? '' : `, and the node does not show by what (${detail})`}.`
    case 'receipt-failed':
      return `${at} has a receipt that does not verify${what}${because}. The key may be used elsewhere.`
    case 'receipt-not-listed':
      return `${at} has a receipt that your manifest does not cover${what}${because}.`
    case 'awaited':
      return `${at} has no receipt yet${what}. If none comes, the key is used elsewhere.`
    case 'receipt-unavailable':
      return `${at} has a receipt that could not be judged${what}${because}.`
    case 'receipt-not-accepted':
      return `${at} has a receipt that was not accepted${what}: ${CONCLUSIONS[conclusion ?? 'incomplete'] ?? conclusion}${detail === undefined ? '' : ` (${detail})`}.`
    case 'not-shown':
      return `${at} was used, and this node does not show by what${because}. Ask a node that keeps the state of old blocks.`
    case 'not-judged':
      return `${at} not looked at yet${because}.`
    case 'authorization':
      return `${at} is of an authorization of code (EIP-7702), not of a transaction${what}.`
    case 'used-by-code':
      return `${at} was used in block ${blockNumber} by code on the account, with no signature of its key.`
    case 'code':
      return `The account runs code${detail === undefined ? '' : ` of ${detail} (EIP-7702)`}. It can move all that the account holds, without a signature of its key.`
    case 'wallet-unknown':
      return 'No accepted receipt names this address, so it may not be a wallet of this service.'
    case 'not-logged':
      return `The signature${what} has a receipt and is in no log, though there was one: an enclave that writes no log has the key. The key is used elsewhere.`
    case 'hidden':
      return `${entry} is a signature of this wallet’s key that no receipt is of: something is hidden.`
    case 'entry-awaited':
      return `${entry} is a signature of this wallet’s key that has no receipt yet. If none comes, something is hidden.`
    case 'entry-unmatched':
      return `${entry} is a signature of this wallet’s key, and its receipt may be one that could not be read.`
    case 'unresolved':
      return `${entry} is a signature of this wallet’s key without a receipt${because}. Whether anybody has it is unresolved.`
    case 'log-lies':
      return `${finding.index === undefined ? log : entry}${what} lies${because}.`
    case 'log-withholds':
      return `${log} withholds what it has${because}.`
    case 'log-stale':
      return `${log} is stale: no quorum of its witnesses cosigned it since ${detail}. What was signed since then may be missing.`
    case 'log-ahead':
      return `${log} is dated ahead of your clock: a quorum of its witnesses cosigned it at ${detail}. It may not be current.`
    case 'boot-not-listed':
      return `${entry}: an enclave started with the configuration ${finding.configHash}, which is not in your manifest${finding.count === 1 ? '' : ` (${finding.count} starts)`}.`
    case 'log-unavailable':
      return `${log} could not be read${because}.`
    case 'witness-unavailable':
      return `A witness of the log ${finding.origin} could not be asked${because}.`
    case 'witness-contradicts':
      return `A witness of the log ${finding.origin} contradicts it${because}. The witness lies, or the service names a false key of the log.`
    case 'log-not-checked':
      return `${log} was not checked${because}${toSilent(finding)}. Signatures in it may be missing here.`
    case 'log-unused':
      return `${log} is not in use: its witnesses state that they cosigned nothing in it.`
    case 'logs-unknown':
      return 'No proof of this wallet names the logs of its enclave yet. There may be logs that were not read.'
    case 'key-unknown':
      return `No proof of this wallet shows its key. ${log} has ${finding.count} ${finding.count === 1 ? 'entry' : 'entries'} about signatures, and any may belong to this wallet.`
    case 'before-log':
      return `${finding.count} ${finding.count === 1 ? 'signature is' : 'signatures are'} from before there was a log.`
  }
}

function toSilent({ witnesses = [] }: Finding): string {
  return witnesses.length === 0
    ? ''
    : `. No such answer from ${witnesses.map((key) => `witness ${key.slice(0, 16)}…`).join(', ')}`
}

function toPlace({ kind, nonces }: Finding): string {
  if (nonces === undefined) return kind === 'not-judged' ? 'Off this chain:' : 'A signature that is not on this chain'
  const [first, last] = nonces
  const name = first === last ? `Nonce ${first}` : `Nonces ${first} to ${last}`
  return kind === 'not-judged' ? `${name}:` : name
}
