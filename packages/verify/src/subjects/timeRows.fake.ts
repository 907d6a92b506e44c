import type { ProofStatus } from '@countersign/protocol'
import { publishedBlock, slug, toLog, toProof } from '../issues.fake.ts'
import { apiBaseUrl, type FakeNetwork, json } from '../network.fake.ts'
import { files, honest, manifest, other } from './honest.fake.ts'
import {
  accepted,
  type Expected,
  failed,
  incomplete,
  type SubjectRow,
  unbounded,
  unboundedOffline,
} from './subjectRow.fake.ts'

const HOUR_S = 3600
/** The receipt is of 12:00:00.123, and blocks have whole seconds: this is the last one within 72 hours. */
const LAST_S = 72 * HOUR_S
const signedAtS = Math.floor(Date.parse(honest.receipt.transaction.signedAt) / 1000)
const late: Expected = { verdict: 'mock', conclusion: 'late', skip: ['time-bound'] }

/** Events of the receipt, each in a block that came so many seconds after the signing, in the order in which a node lists them. */
function events(...delaysS: readonly number[]) {
  const hashOf = (index: number) => `0x${(index + 1).toString(16).padStart(64, '0')}`
  return ({ rpc }: FakeNetwork) => {
    rpc.eth_getLogs = delaysS.map((_, index) =>
      toLog(honest, { blockNumber: `0x${(publishedBlock + index).toString(16)}`, blockHash: hashOf(index) }),
    )
    rpc.eth_getBlockByNumber = (number: string) => {
      const index = Number(number) - publishedBlock
      return { hash: hashOf(index), timestamp: `0x${(signedAtS + (delaysS[index] ?? 0)).toString(16)}` }
    }
  }
}

function row(name: string, delaysS: readonly number[], expected: Expected): SubjectRow {
  return { name, category: 'back-dated', subject: honest.cid, spoil: events(...delaysS), expected }
}

/** A reader who allows that there is no event yet, and what the node answers. */
function allowed(name: string, eth_getLogs: unknown, expected: Expected): SubjectRow {
  const spoil = ({ rpc }: FakeNetwork) => void Object.assign(rpc, { eth_getLogs })
  return { name, category: 'event not due', subject: honest.cid, isEventDue: false, spoil, expected }
}

/** A proof that its service calls by this status, and what the node answers. */
function proof(name: string, status: ProofStatus, eth_getLogs: unknown, expected: Expected): SubjectRow {
  const onchain = status === 'complete' ? {} : { onchainTxHash: null, onchainBlockNumber: null }
  const spoil = ({ rpc, routes }: FakeNetwork) => {
    rpc.eth_getLogs = eth_getLogs
    routes.push([`${apiBaseUrl}/proof/`, () => json(toProof(honest, { status, ...onchain }))])
  }
  return { name, category: 'event not due', subject: slug, spoil, expected }
}

const ours = [toLog(honest)]
const elsewhere = [toLog({ ...honest, cid: other.cid })]

/** When the chain had the receipt, and what that says about when it was signed. */
export const timeRows: readonly SubjectRow[] = [
  row('an event in the last second of 72 hours', [LAST_S], accepted),
  row('an event one second later', [LAST_S + 1], late),
  row('an event ten years later', [10 * 365 * 24 * HOUR_S], late),
  row('a late event listed before one in time', [LAST_S + 1, 60], accepted),
  row('an event in time listed before a late one', [60, LAST_S + 1], accepted),
  row('two late events', [LAST_S + 2, LAST_S + 1], late),
  row('an event before the signature, beside one in time', [60, -6], failed({ time: '' })),
  {
    ...row('a late event, by its transaction', [LAST_S + 1], late),
    subject: honest.receipt.transaction.txHash,
  },
  { ...row('a late event, of a proof', [LAST_S + 1], late), subject: slug },
  { ...row('a late event, though none was due', [LAST_S + 1], late), isEventDue: false },
  {
    ...row('a late event, mock not allowed', [LAST_S + 1], { ...late, conclusion: 'mock' } as Expected),
    allowMock: false,
  },
  {
    ...row('a late event and an anchor that is missing', [LAST_S + 1], {
      verdict: 'mock',
      conclusion: 'unknown-code',
      skip: ['time-bound', 'config'],
    }),
    manifest: { ...manifest, enclave: { ...manifest.enclave, configHashes: [] } },
  },
  {
    ...row('a late event of a receipt without its collateral', [LAST_S + 1], {
      verdict: 'incomplete',
      conclusion: 'incomplete',
      skip: ['time-bound', 'collateral', 'quote', 'report-data', 'quote-policy', 'measurement'],
    }),
    spoil: (network) => {
      events(LAST_S + 1)(network)
      network.blocks.delete(honest.receipt.signer.collateral)
    },
  },
  {
    ...row('a manifest with a shorter limit, just kept', [HOUR_S], accepted),
    manifest: { ...manifest, maximumEventDelayS: HOUR_S },
  },
  {
    ...row('a manifest with a shorter limit, just missed', [HOUR_S + 1], late),
    manifest: { ...manifest, maximumEventDelayS: HOUR_S },
  },
  {
    ...row('a reader who takes a year', [365 * 24 * HOUR_S], accepted),
    maximumEventDelayS: 365 * 24 * HOUR_S,
    expectedOnPage: late,
  },
  {
    ...row('a reader who takes a year, and a manifest that does not', [HOUR_S + 1], late),
    maximumEventDelayS: 365 * 24 * HOUR_S,
    manifest: { ...manifest, maximumEventDelayS: HOUR_S },
  },
  {
    ...allowed('no event, and none due', [], unbounded(['event'])),
    // Nobody can say so there but a service.
    expectedOnPage: failed({ event: '' }),
  },
  allowed('an event, though none was due', ours, accepted),
  allowed('an event that points elsewhere, though none was due', elsewhere, failed({ event: '' })),
  allowed('a node that does not answer, and no event due', 'no', incomplete(['event'])),
  proof('a proof that its service calls pending for ever', 'pending_onchain', [], unbounded(['event'])),
  proof('a proof that its service gave up publishing', 'onchain_failed', [], unbounded(['event'])),
  proof('a proof that its service calls complete, and no event', 'complete', [], {
    ...failed({ event: '' }),
    lies: ['status'],
  }),
  proof('a proof that its service calls pending, and an event of long ago', 'pending_onchain', ours, accepted),
  proof('a pending proof, and an event that points elsewhere', 'pending_onchain', elsewhere, {
    ...failed({ event: '' }),
    lies: ['ipfsCid'],
  }),
  proof('a pending proof, and a node that does not answer', 'pending_onchain', 'no', incomplete(['event'])),
  {
    name: 'two files, and nobody to ask',
    category: 'back-dated',
    ...files,
    expected: unboundedOffline,
  },
  {
    name: 'a node without a contract to ask about',
    category: 'back-dated',
    subject: honest.cid,
    manifest: { ...manifest, contracts: [] },
    expected: { error: 'invalid_arguments' },
    // A site names its contract beside its node.
    expectedOnPage: accepted,
  },
]
