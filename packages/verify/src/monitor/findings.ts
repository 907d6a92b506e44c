import type { Conclusion } from '../verify.ts'

/** The effect of a finding on the report. Warnings and notes leave it complete. */
export type Severity = 'alarm' | 'not-listed' | 'gap' | 'warning' | 'note'

type Members = {
  /** The first and the last affected nonce. */
  nonces?: readonly [first: number, last: number]
  /** The hash of the transaction, or the authorization's hash in its event. */
  txHash?: string
  blockNumber?: number
  /** The conclusion about a receipt. */
  conclusion?: Conclusion
  /** The log's origin. */
  origin?: string
  /** The index of the entry. */
  index?: number
  /** 32 bytes of hex: the statement's leaf hash. */
  leaf?: string
  /** How many occurrences this finding stands for. */
  count?: number
  /** 32 bytes of hex, from a boot entry. */
  configHash?: string
  /** Keys of witnesses that did not state that they cosigned no more of the log than it shows. */
  witnesses?: readonly string[]
  /** Details for an investigation. */
  detail?: string
}

/** The members of a finding, and prepared parts of its sentence. */
type Words = Members & { at: string; what: string; because: string; log: string; entry: string }

type Kind = { severity: Severity; say: (words: Words) => string }

const CONCLUSIONS: Readonly<Partial<Record<Conclusion, string>>> = {
  mock: 'the hardware is simulated',
  'unknown-code': 'no anchor names its code',
  late: 'it was published too long after the signing',
  unbounded: 'nothing on the chain confirms its time',
  incomplete: 'some of its evidence could not be checked',
}

/** The kinds of findings, about the use of a nonce, the account, an entry of a log, or a log. */
const kinds = {
  'no-receipt': {
    severity: 'alarm',
    say: ({ at, what, detail }) =>
      `${at} was used without a receipt${what}: the key is used elsewhere${detail === undefined ? '' : `, and the node does not show by what (${detail})`}.`,
  },
  'receipt-failed': {
    severity: 'alarm',
    say: ({ at, what, because }) =>
      `${at} has a receipt that does not verify${what}${because}. The key may be used elsewhere.`,
  },
  /** The receipt is genuine, but the reader's manifest does not cover its code, configuration, machine, keys or witnesses. */
  'receipt-not-listed': {
    severity: 'not-listed',
    say: ({ at, what, because }) => `${at} has a receipt that your manifest does not cover${what}${because}.`,
  },
  awaited: {
    severity: 'gap',
    say: ({ at, what }) => `${at} has no receipt yet${what}. If none comes, the key is used elsewhere.`,
  },
  /** The receipt or its evidence could not be fetched, or events name more receipts for it than one run checks. */
  'receipt-unavailable': {
    severity: 'gap',
    say: ({ at, what, because }) => `${at} has a receipt that could not be checked${what}${because}.`,
  },
  'receipt-not-accepted': {
    severity: 'gap',
    say: ({ at, what, conclusion = 'incomplete', detail }) =>
      `${at} has a receipt that was not accepted${what}: ${CONCLUSIONS[conclusion] ?? conclusion}${detail === undefined ? '' : ` (${detail})`}.`,
  },
  'not-shown': {
    severity: 'gap',
    say: ({ at, because }) =>
      `${at} was used, but this node does not show by what${because}. Use a node that keeps the state of old blocks.`,
  },
  /** Beyond the limits of one run. */
  'not-judged': { severity: 'gap', say: ({ at, because }) => `${at} not checked yet${because}.` },
  /** It used the nonce, or is one of several in its block that may have used it, and has a receipt. */
  authorization: {
    severity: 'note',
    say: ({ at, what }) => `${at} belongs to an authorization of code (EIP-7702), not to a transaction${what}.`,
  },
  'used-by-code': {
    severity: 'warning',
    say: ({ at, blockNumber }) =>
      `${at} was used in block ${blockNumber} by code on the account, without a signature of its key.`,
  },
  code: {
    severity: 'warning',
    say: ({ detail }) =>
      `The account runs code${detail === undefined ? '' : ` of ${detail} (EIP-7702)`}. It can move all assets of the account, without a signature of its key.`,
  },
  'wallet-unknown': {
    severity: 'gap',
    say: () => 'No accepted receipt names this address, so it may not be a wallet of this service.',
  },
  'not-logged': {
    severity: 'alarm',
    say: ({ what }) =>
      `The signature${what} has a receipt but is in no log, though there was one: an enclave without a log has the key. The key is used elsewhere.`,
  },
  /** Two counts of one state: another enclave has the key, or budgets were given back. */
  'budget-contradicts': {
    severity: 'alarm',
    say: ({ what, because }) =>
      `The payment${what} was counted against a budget that another receipt shows differently${because}. The key is used elsewhere.`,
  },
  /** Such as typed data, dropped signatures and revocations. */
  'budget-not-shown': {
    severity: 'note',
    say: ({ count }) => `${count} ${count === 1 ? 'change' : 'changes'} of the vault’s budgets: counted, not shown.`,
  },
  hidden: {
    severity: 'alarm',
    say: ({ entry }) => `${entry} is a signature of this wallet’s key without a receipt: something is hidden.`,
  },
  'entry-awaited': {
    severity: 'gap',
    say: ({ entry }) =>
      `${entry} is a signature of this wallet’s key without a receipt so far. If none comes, something is hidden.`,
  },
  'entry-unmatched': {
    severity: 'gap',
    say: ({ entry }) => `${entry} is a signature of this wallet’s key. Its receipt may be one that could not be read.`,
  },
  /** The enclave stopped, or states that the receipt may be lost. */
  unresolved: {
    severity: 'gap',
    say: ({ entry, because }) =>
      `${entry} is a signature of this wallet’s key without a receipt${because}. Whether the signature was released is unknown.`,
  },
  /** A log shows two histories, contradicts itself or a receipt, or is not cosigned. */
  'log-lies': {
    severity: 'alarm',
    say: ({ index, log, entry, what, because }) => `${index === undefined ? log : entry}${what} lies${because}.`,
  },
  'log-withholds': { severity: 'gap', say: ({ log, because }) => `${log} withholds entries${because}.` },
  /** Their blocks or parts could not be fetched, or were left for the next run. */
  'anchor-withheld': {
    severity: 'gap',
    say: ({ count, because }) =>
      `${count} anchor ${count === 1 ? 'block' : 'blocks'} could not be read${because}. Receipts in them may be missing here.`,
  },
  /** It is invalid, or its checkpoint is of another tree than the log's. */
  'anchor-contradicts': {
    severity: 'alarm',
    say: ({ log, blockNumber, origin, because }) =>
      `${origin === undefined ? `The anchor block of the checkpoint in block ${blockNumber} is invalid` : `${log} contradicts its checkpoint on the chain`}${because}.`,
  },
  'log-stale': {
    severity: 'gap',
    say: ({ log, detail }) =>
      `${log} is stale: no quorum of its witnesses has cosigned it since ${detail}. Later signatures may be missing.`,
  },
  'log-ahead': {
    severity: 'gap',
    say: ({ log, detail }) =>
      `${log} is dated ahead of your clock: a quorum of its witnesses cosigned it at ${detail}. It may not be current.`,
  },
  'boot-not-listed': {
    severity: 'not-listed',
    say: ({ entry, configHash, count }) =>
      `${entry}: an enclave started with the configuration ${configHash}, which is not in your manifest${count === 1 ? '' : ` (${count} starts)`}.`,
  },
  'log-unavailable': { severity: 'gap', say: ({ log, because }) => `${log} could not be read${because}.` },
  'witness-unavailable': {
    severity: 'warning',
    say: ({ origin, because }) => `A witness of the log ${origin} could not be reached${because}.`,
  },
  'witness-contradicts': {
    severity: 'gap',
    say: ({ origin, because }) =>
      `A witness of the log ${origin} contradicts it${because}. The witness lies, or the service names a false key of the log.`,
  },
  'log-not-checked': {
    severity: 'gap',
    say: ({ log, because, witnesses = [] }) => {
      const silent = witnesses.map((key) => `witness ${key.slice(0, 16)}…`).join(', ')
      const answers = silent === '' ? '' : `. No such answer from ${silent}`
      return `${log} was not checked${because}${answers}. Signatures in it may be missing here.`
    },
  },
  'log-unused': {
    severity: 'note',
    say: ({ log }) => `${log} is not in use: its witnesses state that they cosigned nothing in it.`,
  },
  'logs-unknown': {
    severity: 'gap',
    say: () => 'No proof of this wallet names the logs of its enclave yet. There may be logs that were not read.',
  },
  'key-unknown': {
    severity: 'gap',
    say: ({ log, count }) =>
      `No proof of this wallet shows its key. ${log} has ${count} ${count === 1 ? 'entry' : 'entries'} about signatures, and any may belong to this wallet.`,
  },
  'before-log': {
    severity: 'note',
    say: ({ count }) => `${count} ${count === 1 ? 'signature is' : 'signatures are'} from before there was a log.`,
  },
} as const satisfies Readonly<Record<string, Kind>>

export type FindingKind = keyof typeof kinds

export type Finding = Members & { kind: FindingKind }

export function toSeverity(kind: FindingKind): Severity {
  return kinds[kind].severity
}

export function describeFinding({ kind, ...finding }: Finding): string {
  const { txHash, blockNumber, detail, origin, index } = finding
  return kinds[kind].say({
    ...finding,
    at: toPlace({ kind, ...finding }),
    what: txHash === undefined ? '' : ` (${txHash}${blockNumber === undefined ? '' : `, block ${blockNumber}`})`,
    because: detail === undefined ? '' : `: ${detail}`,
    log: origin === undefined ? 'The log' : `The log ${origin}`,
    entry: `Entry ${index} of the log ${origin}`,
  })
}

function toPlace({ kind, nonces }: Finding): string {
  if (nonces === undefined) return kind === 'not-judged' ? 'Off this chain:' : 'A signature that is not on this chain'
  const [first, last] = nonces
  const name = first === last ? `Nonce ${first}` : `Nonces ${first} to ${last}`
  return kind === 'not-judged' ? `${name}:` : name
}
