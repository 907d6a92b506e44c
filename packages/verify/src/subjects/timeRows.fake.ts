import { publishedBlock, slug, toLog, toProof } from '../issues.fake.ts'
import { apiBaseUrl, type FakeNetwork, json } from '../network.fake.ts'
import { files, honest, manifest } from './honest.fake.ts'
import { accepted, type Expected, failed, type SubjectRow, unbounded, unboundedOffline } from './subjectRow.fake.ts'

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
    name: 'a proof that its service calls pending for ever',
    category: 'back-dated',
    subject: slug,
    isEventDue: false,
    spoil: ({ rpc, routes }) => {
      rpc.eth_getLogs = []
      const proof = { status: 'pending_onchain', onchainTxHash: null, onchainBlockNumber: null }
      routes.push([`${apiBaseUrl}/proof/`, () => json(toProof(honest, proof))])
    },
    expected: unbounded(['event']),
  },
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
