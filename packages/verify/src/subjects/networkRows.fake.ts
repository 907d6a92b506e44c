import { toCid } from '@countersign/receipt'
import { contract, slug, toLog, toProof } from '../issues.fake.ts'
import { apiBaseUrl, type FakeNetwork, gatewayUrl, html, json, rpcUrl } from '../network.fake.ts'
import type { Manifest } from '../parseManifest.ts'
import { encode, files, honest, manifest, other } from './honest.fake.ts'
import {
  accepted,
  type Expected,
  failed,
  incomplete,
  noReceipt,
  OFFLINE,
  type SubjectRow,
  UNASKED,
} from './subjectRow.fake.ts'

const { txHash } = honest.receipt.transaction
const garbage = encode('<!doctype html>')
const onTwoChains: Manifest = { ...manifest, contracts: [1, 31337].map((chainId) => ({ chainId, address: contract })) }

/** An answer of the node in place of the honest one. */
function node(name: string, category: SubjectRow['category'], rpc: Record<string, unknown>, expected: Expected) {
  const spoil = (network: FakeNetwork) => void Object.assign(network.rpc, rpc)
  return { name, category, subject: honest.cid, spoil, expected } satisfies SubjectRow
}

/** The same answer to everything that the gateways are asked about the receipt. */
function gateways(
  name: string,
  category: SubjectRow['category'],
  answer: () => Response | Promise<Response>,
  expected: Expected,
): SubjectRow {
  const spoil = ({ routes }: FakeNetwork) =>
    void routes.push([`${gatewayUrl}/ipfs/${honest.cid}`, answer], [`${apiBaseUrl}/ipfs/${honest.cid}`, answer])
  return { name, category, subject: honest.cid, spoil, expected }
}

/** An answer of the service about a proof in place of the honest one. */
function service(
  name: string,
  category: SubjectRow['category'],
  answer: () => Response | Promise<Response>,
  expected: Expected,
): SubjectRow {
  const spoil = ({ routes }: FakeNetwork) => void routes.push([`${apiBaseUrl}/proof/`, answer])
  return { name, category, subject: slug, spoil, expected }
}

const proofWith = (changes: Readonly<Record<string, unknown>>) => () => json(toProof(honest, changes))
const redirectTo =
  (location: string, status = 302) =>
  () =>
    new Response(null, { status, headers: { location } })

/** Gateways, nodes and services that fail or lie. */
export const networkRows: readonly SubjectRow[] = [
  gateways('gateways that are down', 'unreachable', () => Promise.reject(new TypeError('Failed to fetch')), {
    error: 'fetch_failed',
  }),
  gateways('gateways that do not have it', 'unreachable', () => new Response(null, { status: 404 }), {
    error: 'fetch_failed',
  }),
  {
    name: 'collateral that no gateway has',
    category: 'unreachable',
    subject: honest.cid,
    spoil: ({ blocks }) => void blocks.delete(honest.receipt.signer.collateral),
    expected: incomplete(['collateral', 'quote', 'report-data', 'quote-policy', 'measurement']),
  },
  {
    name: 'a file without collateral or gateway',
    category: 'unreachable',
    ...files,
    collaterals: [],
    expected: incomplete([...OFFLINE, 'collateral', 'quote', 'report-data', 'quote-policy', 'measurement']),
  },
  {
    name: 'a CID without a gateway',
    category: 'unreachable',
    subject: honest.cid,
    hasSources: false,
    hasNode: false,
    expected: { error: 'invalid_arguments' },
    // A site always has a service, which is a gateway too.
    expectedOnPage: { error: 'fetch_failed' },
  },
  {
    name: 'a transaction without a node',
    category: 'unreachable',
    subject: txHash,
    hasNode: false,
    expected: { error: 'invalid_arguments' },
  },
  {
    name: 'a node that is down',
    category: 'unreachable',
    subject: honest.cid,
    spoil: ({ routes }) => void routes.push([rpcUrl, () => Promise.reject(new TypeError('Failed to fetch'))]),
    expected: incomplete(UNASKED),
  },
  {
    name: 'a transaction, of a node that is down',
    category: 'unreachable',
    subject: txHash,
    spoil: ({ routes }) => void routes.push([rpcUrl, () => json({}, 503)]),
    expected: { error: 'chain_unavailable' },
  },
  service('a service that is down', 'unreachable', () => json({}, 503), { error: 'fetch_failed' }),
  service('a slug that nobody knows', 'unreachable', () => json({ code: 'proof_not_found' }, 404), {
    error: 'proof_not_found',
  }),

  gateways('another receipt', 'lying gateway', () => new Response(other.bytes), { error: 'fetch_failed' }),
  gateways('a web page', 'lying gateway', html, { error: 'fetch_failed' }),
  {
    name: 'one that lies and one that does not',
    category: 'lying gateway',
    subject: honest.cid,
    spoil: ({ routes }) => void routes.push([`${gatewayUrl}/ipfs/${honest.cid}`, () => new Response('{}')]),
    expected: accepted,
  },
  gateways('a receipt cut short', 'truncated', () => new Response(honest.bytes.slice(0, 1000)), {
    error: 'fetch_failed',
  }),
  {
    name: 'a file cut short',
    category: 'truncated',
    ...files,
    subject: { name: 'receipt.json', bytes: honest.bytes.slice(0, -1) },
    expected: { error: 'receipt_not_canonical' },
  },
  gateways(
    'bytes without end',
    'oversized',
    () => new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(65_536)) })),
    { error: 'fetch_failed' },
  ),
  {
    name: 'a file beyond the bound',
    category: 'oversized',
    ...files,
    subject: { name: 'receipt.json', bytes: new Uint8Array(262_145).fill(0x20) },
    expected: { error: 'receipt_too_large' },
  },
  service('a proof beyond the bound', 'oversized', () => new Response('x'.repeat(1_048_577)), {
    error: 'fetch_failed',
  }),

  gateways('a gateway that redirects to itself', 'redirect', redirectTo(`${gatewayUrl}/other`), {
    error: 'fetch_failed',
  }),
  gateways(
    'a gateway that redirects to the right bytes',
    'redirect',
    redirectTo(`https://elsewhere.test/ipfs/${honest.cid}`, 301),
    { error: 'fetch_failed' },
  ),
  {
    name: 'a node that redirects',
    category: 'redirect',
    subject: honest.cid,
    spoil: ({ routes }) => void routes.push([rpcUrl, redirectTo('https://elsewhere.test', 307)]),
    expected: incomplete(UNASKED),
  },
  service('a service that redirects', 'redirect', redirectTo('http://169.254.169.254/'), { error: 'fetch_failed' }),

  node('logs that are no list', 'lying node', { eth_getLogs: 'no' }, incomplete(['event'])),
  node('too many logs', 'lying node', { eth_getLogs: Array(17).fill(toLog(honest)) }, incomplete(['event'])),
  node(
    'a log without a transaction',
    'lying node',
    { eth_getLogs: [toLog(honest, { transactionHash: null })] },
    incomplete(['event']),
  ),
  node(
    'a block of another hash',
    'lying node',
    { eth_getBlockByNumber: { hash: `0x${'01'.repeat(32)}`, timestamp: '0x1' } },
    incomplete(['event']),
  ),
  node(
    'an event before the signature',
    'lying node',
    { eth_getBlockByNumber: { hash: toLog(honest).blockHash, timestamp: '0x1' } },
    failed({ time: '' }),
  ),
  node(
    'an event that cannot be read',
    'lying node',
    { eth_getLogs: [toLog(honest, { data: '0x00' })] },
    failed({ event: 'event_malformed' }),
  ),
  node(
    'an event that cannot be read, beside one that names the receipt',
    'lying node',
    { eth_getLogs: [toLog(honest, { data: '0x00' }), toLog(honest)] },
    accepted,
  ),
  node(
    'another transaction than asked',
    'lying node',
    { eth_getTransactionByHash: { hash: `0x${'00'.repeat(32)}` } },
    { ...accepted, skip: ['transaction'] },
  ),
  node('a node that does not say its chain', 'wrong chain', { eth_chainId: null }, incomplete(UNASKED)),
  node('a node of another chain', 'wrong chain', { eth_chainId: '0x1' }, incomplete(UNASKED)),
  {
    name: 'a transaction, of a node of another chain',
    category: 'wrong chain',
    subject: txHash,
    spoil: ({ rpc }) => void Object.assign(rpc, { eth_chainId: '0x1' }),
    expected: { error: 'chain_unavailable' },
  },
  {
    name: 'a contract on another chain alone',
    category: 'wrong chain',
    subject: honest.cid,
    manifest: { ...manifest, contracts: [{ chainId: 1, address: contract }] },
    nodeChainId: 1,
    expected: incomplete(UNASKED),
  },
  {
    name: 'contracts on two chains, and a node of the right one',
    category: 'wrong chain',
    subject: honest.cid,
    manifest: onTwoChains,
    expected: accepted,
  },
  {
    name: 'contracts on two chains, and a node of the other one',
    category: 'wrong chain',
    subject: honest.cid,
    manifest: onTwoChains,
    nodeChainId: 1,
    // Nothing tells the command line which of the two chains the reader means.
    expected: accepted,
    expectedOnPage: incomplete(UNASKED),
  },
  {
    name: 'contracts on two chains, and a node of neither',
    category: 'wrong chain',
    subject: honest.cid,
    manifest: onTwoChains,
    spoil: ({ rpc }) => void Object.assign(rpc, { eth_chainId: '0x5' }),
    expected: incomplete(UNASKED),
  },

  service('a proof of another transaction', 'other transaction', proofWith({ txHash: `0x${'00'.repeat(32)}` }), {
    ...failed({ subject: '' }),
    lies: ['txHash'],
  }),
  service('a proof on another chain', 'other transaction', proofWith({ chainId: 1 }), {
    ...failed({ subject: '' }),
    lies: ['chainId'],
  }),
  service('a proof of another wallet', 'other transaction', proofWith({ walletAddress: `0x${'00'.repeat(20)}` }), {
    ...failed({ subject: '' }),
    lies: ['walletAddress'],
  }),
  {
    name: 'an event that leads to the receipt of another transaction',
    category: 'other transaction',
    subject: txHash,
    spoil: ({ rpc, blocks }) => {
      blocks.set(other.cid, other.bytes)
      rpc.eth_getLogs = [toLog({ ...honest, cid: other.cid })]
    },
    expected: failed({ event: '', subject: '' }, [
      'collateral',
      'quote',
      'report-data',
      'quote-policy',
      'measurement',
      'transaction',
    ]),
  },
  {
    name: 'two receipts of one transaction',
    category: 'other transaction',
    subject: txHash,
    spoil: ({ rpc }) => {
      rpc.eth_getLogs = [toLog(honest), toLog({ ...honest, cid: other.cid })]
    },
    expected: { error: 'invalid_arguments' },
  },

  service('a web page in place of a proof', 'lying service', html, { error: 'fetch_failed' }),
  service('the proof of another slug', 'lying service', proofWith({ slug: 'A'.repeat(22) }), { error: 'fetch_failed' }),
  service('a proof without a member', 'lying service', proofWith({ kmsQuoteVerified: undefined }), {
    error: 'fetch_failed',
  }),
  service('a proof with another kind of CID', 'lying service', proofWith({ ipfsCid: 'Qm' }), { error: 'fetch_failed' }),
  service(
    'a proof that is not pinned',
    'lying service',
    proofWith({ status: 'pending_pin', ipfsCid: null, receipt: null }),
    { error: 'proof_not_pinned' },
  ),
  service('a proof with the copy of another receipt', 'lying service', proofWith({ receipt: other.receipt }), {
    ...accepted,
    conclusion: 'contradicted',
    lies: ['receipt'],
  }),
  service('a proof with the event in another block', 'lying service', proofWith({ onchainBlockNumber: 13 }), {
    ...accepted,
    conclusion: 'contradicted',
    lies: ['onchainBlockNumber'],
  }),
  {
    ...service('a proof with a lie, mock not allowed', 'lying service', proofWith({ onchainBlockNumber: 13 }), {
      ...accepted,
      conclusion: 'contradicted',
      lies: ['onchainBlockNumber', 'kmsQuoteVerified'],
    }),
    allowMock: false,
  },
  {
    ...service(
      'a proof whose CID is that of something else',
      'lying service',
      proofWith({ ipfsCid: toCid(garbage) }),
      noReceipt('receipt_not_canonical', ['receipt']),
    ),
    spoil: ({ routes, blocks }) => {
      blocks.set(toCid(garbage), garbage)
      routes.push([`${apiBaseUrl}/proof/`, proofWith({ ipfsCid: toCid(garbage) })])
    },
  },
  {
    name: 'an event that leads to something else',
    category: 'lying service',
    subject: txHash,
    spoil: ({ rpc, blocks }) => {
      blocks.set(toCid(garbage), garbage)
      rpc.eth_getLogs = [toLog({ ...honest, cid: toCid(garbage) })]
    },
    expected: noReceipt('receipt_not_canonical'),
  },
  service('a gateway that is a script', 'lying service', proofWith({ ipfsUrl: 'javascript:alert(1)' }), accepted),
  {
    name: 'a proof whose receipt is nowhere but in its answer',
    category: 'lying service',
    subject: slug,
    spoil: ({ blocks }) => void blocks.delete(honest.cid),
    expected: { error: 'fetch_failed' },
  },

  node('no event', 'event missing', { eth_getLogs: [] }, failed({ event: '' })),
  {
    name: 'no event for a transaction',
    category: 'event missing',
    subject: txHash,
    spoil: ({ rpc }) => void Object.assign(rpc, { eth_getLogs: [] }),
    expected: { error: 'event_not_found' },
  },
  node(
    'an event that was removed',
    'event missing',
    { eth_getLogs: [toLog(honest, { removed: true })] },
    failed({ event: '' }),
  ),
  node(
    'an event of another contract',
    'event missing',
    { eth_getLogs: [toLog(honest, { address: `0x${'cd'.repeat(20)}` })] },
    failed({ event: '' }),
  ),
  node(
    'an event that points elsewhere',
    'event missing',
    { eth_getLogs: [toLog({ ...honest, cid: other.cid })] },
    failed({ event: '' }),
  ),
]
