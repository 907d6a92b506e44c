import type { TcbStatus } from '@countersign/attestation'
import { createSimulator, type SimulatedRevocationOptions } from '@countersign/attestation/simulator'
import { concatBytes, type ProofStatus, toCanonicalJson, withholdHalf } from '@countersign/protocol'
import { encodeReceiptCar, parseBlock, type ReceiptFiles, toCid } from '@countersign/receipt'
import type { SimulatedAttestation } from '@countersign/receipt/simulator'
import { goldenVaults } from '../../receipt/test/vaults.ts'
import type { Claim } from '../src/compareClaims.ts'
import type { GivenFile } from '../src/loadParts.ts'
import { emptyManifest, type Manifest } from '../src/parseManifest.ts'
import type { VerifierStep } from '../src/steps.ts'
import type { Conclusion, Outcome } from '../src/verify.ts'
import {
  contract,
  type FakeIssue,
  issue,
  issueGolden,
  issueGoldenV2,
  publishedBlock,
  slug,
  toLog,
  toManifest,
  toProof,
} from './issues.ts'
import { apiBaseUrl, createFakeNetwork, type FakeNetwork, gatewayUrl, html, json, rpcUrl } from './network.ts'

/*
 * Inputs, network responses and expected results. `verify` is tested with every case, the command line and the page with one case of each
 * outcome. Valid receipts with a single fault are in `packages/receipt/spec`.
 */

type StepIds = readonly VerifierStep['id'][]

type Fails = Readonly<Partial<Record<VerifierStep['id'], string>>>
type Lies = readonly Claim['member'][]

type ExpectedOutcome = {
  verdict: Outcome['verdict']
  conclusion: Conclusion
  /** By step: the code, or an empty text if the step fails without one. */
  fail?: Fails
  /** In addition to those that are skipped for every reader. */
  skip?: StepIds
  /** Steps that are usually skipped, but not here. */
  pass?: StepIds
  /** The service's claims, in the order of `compareClaims`. */
  lies?: Lies
}

export type Expected = ExpectedOutcome | { error: string }

type Given = {
  /** A file, or a text that names a receipt. */
  subject: GivenFile | string
  /** The page's result, if it differs from the command line's. */
  expectedOnPage?: Expected
  /** The receipt on the network; by default the golden one of version 1. */
  issue?: FakeIssue
  opening?: GivenFile
  collaterals?: readonly GivenFile[]
  /** AMD's revocation list, which the page does not accept. */
  revocations?: GivenFile
  /** Default: all anchors for the issue. */
  manifest?: Manifest
  /** Whether simulated evidence is allowed. Default: true. */
  allowMock?: boolean
  tcbStatuses?: readonly TcbStatus[]
  at?: Date
  /** Whether an event is required. Default: true. The page has no such field: there, only a service can say that none is due. */
  isEventDue?: boolean
  /** The page has no such field. */
  maximumEventDelayS?: number
  /** Whether gateway and service are named. Default: true. */
  hasSources?: boolean
  /** Whether a node is named. Default: true. */
  hasNode?: boolean
  /** The node's chain according to the site. Default: 31337. The command line relies on the node. */
  nodeChainId?: number
  /** How the network differs from the honest one. */
  spoil?: (network: FakeNetwork) => void
}

export type Subject = Given & { name: string; expected: Expected }

/** The time of verification. */
export const judgedAt = new Date('2026-07-01T00:00:00Z')

// Expected results.
const UNASKED: StepIds = ['event', 'transaction']
const OFFLINE: StepIds = ['cid', ...UNASKED]
const NO_COLLATERAL: StepIds = ['collateral', 'quote', 'report-data', 'quote-policy', 'measurement']
const UNOPENED: StepIds = ['opening', 'digest', 'signature']
const OFF_CHAIN: StepIds = ['transaction']
const COORDINATOR: StepIds = ['coordinator-policy', 'coordinator-chip', 'coordinator-measurement', 'coordinator-config']
const UNANCHORED: StepIds = ['measurement', 'config', ...COORDINATOR]
const accepted: ExpectedOutcome = { verdict: 'mock', conclusion: 'accepted' }
const acceptedBut = (skip: StepIds): ExpectedOutcome => ({ ...accepted, skip })
const acceptedInLog: ExpectedOutcome = { ...accepted, pass: ['log'] }
const late: ExpectedOutcome = { verdict: 'mock', conclusion: 'late', skip: ['time-bound'] }
const lateMock: ExpectedOutcome = { ...late, conclusion: 'mock' }
const unbounded = (skip: StepIds): ExpectedOutcome => ({ verdict: 'mock', conclusion: 'unbounded', skip })
const incomplete = (skip: StepIds): ExpectedOutcome => ({ verdict: 'incomplete', conclusion: 'incomplete', skip })
const incompleteMock = (skip: StepIds): ExpectedOutcome => ({ verdict: 'incomplete', conclusion: 'mock', skip })
const unknownCode = (...skip: StepIds): ExpectedOutcome => ({ verdict: 'mock', conclusion: 'unknown-code', skip })
const refusedMock = (skip: StepIds = []): ExpectedOutcome => ({ verdict: 'mock', conclusion: 'mock', skip })
const contradicted = (...lies: Lies): ExpectedOutcome => ({ verdict: 'mock', conclusion: 'contradicted', lies })
const lying = (judged: ExpectedOutcome, ...lies: Lies): ExpectedOutcome => ({ ...judged, lies })
const error = (code: string): Expected => ({ error: code })
const failed = (fail: Fails, skip: StepIds = []): ExpectedOutcome => ({
  verdict: 'failed',
  conclusion: 'failed',
  fail,
  skip,
})

// Inputs.
const honest = await issueGolden()
const other = await issue({ txMetadata: { nonce: 1 } })
const manifest = toManifest(honest)
const { transaction: paid } = honest.receipt
const collateralCid = honest.receipt.signer.collateral
const encode = (text: string) => new TextEncoder().encode(text)
const toFile = (name: string, bytes: Uint8Array): GivenFile => ({ name, bytes: Uint8Array.from(bytes) })
const collateral = toFile('collateral.json', honest.collateral)
const offline = { hasSources: false, hasNode: false } as const
/** Only two files. */
const files = (issued: FakeIssue = honest) => {
  const collaterals = [toFile('collateral.json', issued.collateral)]
  return { subject: toFile('receipt.json', issued.bytes), collaterals, manifest: toManifest(issued), ...offline }
}
const byCid = (issued: FakeIssue = honest) => ({ issue: issued, subject: issued.cid })
const bySlug = (issued: FakeIssue = honest) => ({ issue: issued, subject: slug })
const byTransaction = { subject: paid.txHash }
const toCar = (issued: SimulatedAttestation, changes: Partial<ReceiptFiles> = {}) => {
  const subject = toFile('receipt.car', encodeReceiptCar({ ...issued, ...changes }))
  return { issue: issued, subject, ...offline }
}
/** A receipt of version 2 as a file, with its blocks on a gateway. */
const toChanged = (issued: SimulatedAttestation, receipt: object) => {
  return { issue: issued, subject: toFile('receipt.json', toCanonicalJson(receipt)) }
}
const redirected = {
  ...files(),
  subject: toFile(
    'receipt.json',
    toCanonicalJson({ ...honest.receipt, transaction: { ...paid, to: `0x${'ee'.repeat(20)}` } }),
  ),
}
const toOwner = ({ owner }: SimulatedAttestation, changes: object = {}) => {
  if (owner === undefined) throw new Error('only an address has an owner')
  const { salt, identity } = owner
  return { opening: toFile('owner.json', toCanonicalJson({ salt, identity: { ...identity, ...changes } })) }
}
const toOpening = ({ opening }: SimulatedAttestation, without?: 'content' | 'signature') => {
  if (opening === undefined) throw new Error('this kind has no opening')
  const shown = without === undefined ? opening : withholdHalf(opening, without)
  return { opening: toFile('opening.json', toCanonicalJson(shown)) }
}

// Differences in the network.
type NetworkChange = { spoil: (network: FakeNetwork) => void }
type Answer = () => Response | Promise<Response>
const refuse: Answer = () => Promise.reject(new TypeError('Failed to fetch'))
const without = (cid: string): NetworkChange => ({ spoil: ({ blocks }) => void blocks.delete(cid) })
const exchange = (cid: string, block: Uint8Array): NetworkChange => ({
  spoil: ({ blocks }) => void blocks.set(cid, Uint8Array.from(block)),
})
const route = (...routes: [prefix: string, answer: Answer][]): NetworkChange => ({
  spoil: (network) => void network.routes.push(...routes),
})
const node = (rpc: Readonly<Record<string, unknown>>): NetworkChange => ({
  spoil: (network) => void Object.assign(network.rpc, rpc),
})
const both = (...parts: NetworkChange[]): NetworkChange => ({
  spoil(network) {
    for (const { spoil } of parts) spoil(network)
  },
})
/** One response to all requests to gateways. */
const gateways = (answer: Answer) => ({
  ...byCid(),
  ...route([`${gatewayUrl}/ipfs/${honest.cid}`, answer], [`${apiBaseUrl}/ipfs/${honest.cid}`, answer]),
})
const service = (answer: Answer) => ({ ...bySlug(), ...route([`${apiBaseUrl}/proof/`, answer]) })
const proofWith = (changes: Readonly<Record<string, unknown>>) => service(() => json(toProof(honest, changes)))
const withLogs = (...eth_getLogs: unknown[]) => ({ ...byCid(), ...node({ eth_getLogs }) })
/** A proof with this status, and the node's events. */
const proofOf = (status: ProofStatus, ...logs: unknown[]) => {
  const onchain = status === 'complete' ? {} : { onchainTxHash: null, onchainBlockNumber: null }
  return { ...bySlug(), ...both(withLogs(...logs), proofWith({ status, ...onchain })) }
}
const elsewhere = toLog({ ...honest, cid: other.cid })
const unrelatedHash = `0x${'11'.repeat(32)}`
const toLogAt = (hash: string | null | undefined) => {
  const [topic = '', wallet = ''] = toLog(honest).topics
  return toLog(honest, hash === unrelatedHash ? { topics: [topic, wallet, hash] } : {})
}
const unreadable = toLog(honest, { data: '0x00' })
const garbage = encode('<!doctype html>')
const garbageCid = toCid(garbage)
const webApp = {
  subject: `https://app.test/proof/${slug}`,
  hasSources: false,
  ...route(['https://app.test/config.json', () => json({ apiBaseUrl, chainId: 31337 })], ['https://app.test', html]),
}
const namedGateway = {
  subject: `https://${honest.cid}.ipfs.links.test/`,
  hasSources: false,
  ...route(
    [`https://${honest.cid}.ipfs.links.test/?format=raw`, () => new Response(honest.bytes)],
    [`https://${collateralCid}.ipfs.links.test/?format=raw`, () => new Response(honest.collateral)],
  ),
}

// The time of the event.
const HOUR_S = 3600
/** The receipt is of 12:00:00.123, and blocks have whole seconds: this is the last one within 72 hours. */
const LAST_S = 72 * HOUR_S
/** Events of the receipt, each in a block this many seconds after the signing, in the node's order. */
const events = (...delaysS: readonly number[]) => {
  const hashOf = (index: number) => `0x${(index + 1).toString(16).padStart(64, '0')}`
  const toQuantity = (value: number) => `0x${value.toString(16)}`
  const logs = delaysS.map((_, index) =>
    toLog(honest, { blockNumber: toQuantity(publishedBlock + index), blockHash: hashOf(index) }),
  )
  const eth_getBlockByNumber = (number: string) => {
    const index = Number(number) - publishedBlock
    const timestampS = Math.floor(Date.parse(paid.signedAt) / 1000) + (delaysS[index] ?? 0)
    return { hash: hashOf(index), timestamp: toQuantity(timestampS) }
  }
  return { ...byCid(), ...node({ eth_getLogs: logs, eth_getBlockByNumber }) }
}
const impatient: Manifest = { ...manifest, maximumEventDelayS: HOUR_S }
const later = new Date('2028-06-15T12:00:00Z')
const laterSimulator = createSimulator({ at: later })
const fresh = toFile('fresh.json', toCanonicalJson(laterSimulator.collateral()))
const editTcbInfo = (text: string) => text.replaceAll('"UpToDate"', '"OutOfDate"')
const worsened = toFile('worsened.json', toCanonicalJson(laterSimulator.collateral({ editTcbInfo })))

// Manifests.
const withEnclave = (change: Partial<Manifest['enclave']>) => {
  return { ...files(), manifest: { ...manifest, enclave: { ...manifest.enclave, ...change } } }
}
const onChain = (...chainIds: number[]): Manifest => {
  return { ...manifest, contracts: chainIds.map((chainId) => ({ chainId, address: contract })) }
}
const onTwoChains = { ...byCid(), manifest: onChain(1, 31337) }
const [whole = { mrTd: '' }] = manifest.enclave.measurements
const revocations = (options: SimulatedRevocationOptions) => {
  const list = createSimulator({ at: judgedAt }).revocations(options)
  return { ...files(), revocations: toFile('revocations.der', list), expectedOnPage: unbounded(OFFLINE) }
}
const outdated = await issue({ quote: { status: 'OutOfDate' } })
const otherCode = await issue({ quote: { mrtd: new Uint8Array(48).fill(0xee) } })

// Version 2, vaults and logs.
const LOG = { witnesses: 3, quorum: 2, cosigners: [0, 2] } as const
const transaction = await issueGoldenV2()
const authorization = await issueGoldenV2({ signing: { kind: 'authorization' } })
const message = await issueGoldenV2({ signing: { kind: 'message' } })
const otherMessage = await issueGoldenV2({ signing: { kind: 'message' }, signedAt: new Date('2026-06-15T12:00:05Z') })
const typedData = await issueGoldenV2({ signing: { kind: 'typed-data' } })
const beacon = await issueGoldenV2({ isBeacon: true })
const vault = await issueGoldenV2(goldenVaults.transaction)
const vaultTypedData = await issueGoldenV2(goldenVaults['off-chain'])
const vaultAddress = await issueGoldenV2(goldenVaults.address)
const walletAddress = await issueGoldenV2(goldenVaults['wallet-address'])
const otherPolicy = (await issueGoldenV2(goldenVaults.scheduled)).blocks.policy ?? new Uint8Array()
const policyCid = vault.receipt.policy ?? ''
const inLog = await issueGoldenV2({ log: LOG })
const { batch: _, ...withoutBatch } = message.blocks
const blockCid = (name: 'release' | 'batch' | 'coordinator') => toCid(transaction.blocks[name])
const [first = '', silent = '', third = ''] = parseBlock('batch', inLog.blocks.batch).settings.log?.witnesses ?? []
const trusting = (witnesses: string[], quorum: number, issued = inLog) => {
  return { ...byCid(issued), manifest: { ...toManifest(issued), log: { witnesses, quorum } } }
}

function of(expected: Expected, cases: Readonly<Record<string, Given>>): Subject[] {
  return Object.entries(cases).map(([name, given]) => ({ name, expected, ...given }))
}

/** By expected result. */
export const subjects: readonly Subject[] = [
  ...of(accepted, {
    'a CID': byCid(),
    'a transaction': byTransaction,
    'a slug': bySlug(),
    'a proof URL': { subject: `${apiBaseUrl}/proof/${slug}`, hasSources: false },
    'the link of a web app': webApp,
    'a link of a gateway': { subject: `https://links.test/ipfs/${honest.cid}`, hasSources: false },
    'a link of a gateway with names': namedGateway,
    'a gateway that lies, and one that does not': {
      ...byCid(),
      ...route([`${gatewayUrl}/ipfs/${honest.cid}`, () => new Response('{}')]),
    },
    'a malformed event, and one that names the receipt': withLogs(unreadable, toLog(honest)),
    'contracts on two chains, and a node of the right one': onTwoChains,
    // The command line can't know which of the two chains the reader means.
    'contracts on two chains, and a node of the other one': {
      ...onTwoChains,
      nodeChainId: 1,
      expectedOnPage: incomplete(UNASKED),
    },
    'a proof whose gateway is a script': proofWith({ ipfsUrl: 'javascript:alert(1)' }),
    'an event in the last second of 72 hours': events(LAST_S),
    'a reader who takes a year': {
      ...events(365 * 24 * HOUR_S),
      maximumEventDelayS: 365 * 24 * HOUR_S,
      expectedOnPage: late,
    },
    'a proof that its service calls pending, and an event of long ago': proofOf('pending_onchain', toLog(honest)),
    'version 2: a transaction': byCid(transaction),
    'version 2: a public beacon': byCid(beacon),
    'a vault: a transaction': byCid(vault),
  }),
  ...of(acceptedBut(['cid']), {
    'a file, its collateral from a gateway': { subject: toFile('receipt.json', honest.bytes) },
    'version 2: a file, its blocks from a gateway': toChanged(transaction, transaction.receipt),
  }),
  ...of(acceptedBut(OFF_CHAIN), {
    'version 2: an authorization': byCid(authorization),
    'an opening of typed data, both halves': { ...byCid(typedData), ...toOpening(typedData) },
    'a vault: its address by slug, and its owner': { ...bySlug(vaultAddress), ...toOwner(vaultAddress) },
    'a wallet: its address, and its owner': { ...byCid(walletAddress), ...toOwner(walletAddress) },
    'a vault: typed data, opened': { ...byCid(vaultTypedData), ...toOpening(vaultTypedData) },
    'another transaction than asked': {
      ...byCid(),
      ...node({ eth_getTransactionByHash: { hash: `0x${'00'.repeat(32)}` } }),
    },
  }),
  ...of(acceptedBut([...UNOPENED, ...OFF_CHAIN]), { 'version 2: a message by slug, not opened': bySlug(message) }),
  ...of(acceptedBut(['opening', ...OFF_CHAIN]), {
    'a vault: its address by slug, its owner sealed': bySlug(vaultAddress),
    'a wallet: its address, its owner sealed': byCid(walletAddress),
  }),
  ...of(acceptedBut([...UNOPENED, ...OFF_CHAIN, 'vault-rule', 'vault-approvals']), {
    'a vault: typed data, not opened': byCid(vaultTypedData),
  }),
  ...of(acceptedInLog, {
    'a log: a transaction': byCid(inLog),
    'a log: witnesses of the reader’s own, who cosigned': trusting([third, silent, first], 2),
  }),
  ...of(unbounded(OFFLINE), {
    'two files': files(),
    'collateral with a line feed after it': {
      ...files(),
      collaterals: [toFile('collateral.json', concatBytes(honest.collateral, encode('\n')))],
    },
    'an outdated platform that is accepted': {
      ...files(outdated),
      manifest: toManifest(outdated),
      tcbStatuses: ['OutOfDate'],
    },
    'checked again': { ...files(), at: later, collaterals: [collateral, fresh] },
    'version 2: a CAR': toCar(transaction),
    'an opening of a message, both halves': { ...toCar(message), ...toOpening(message) },
  }),
  ...of(unbounded(UNASKED), {
    'a CID, without a node': { ...byCid(), hasNode: false },
    'a file that is named after its CID': { ...files(), subject: toFile(`${honest.cid}.json`, honest.bytes) },
    'version 2: a CAR that is named after its CID': {
      ...toCar(transaction),
      subject: { ...toCar(transaction).subject, name: `${transaction.cid}.car` },
    },
  }),
  ...of(unbounded(['event']), {
    'a proof that stays pending': proofOf('pending_onchain'),
    'a proof that its service failed to publish': proofOf('onchain_failed'),
    // On the page, only a service can say that none is due.
    'no event, and none due': { ...withLogs(), isEventDue: false, expectedOnPage: failed({ event: '' }) },
  }),
  ...of(unbounded([...OFFLINE, 'signature']), {
    'an opening, only the content': { ...toCar(message), ...toOpening(message, 'signature') },
  }),
  ...of(late, {
    'an event one second later': events(LAST_S + 1),
    'a reader who takes a year, and a manifest that does not': {
      ...events(HOUR_S + 1),
      maximumEventDelayS: 365 * 24 * HOUR_S,
      manifest: impatient,
    },
  }),
  ...of(lateMock, { 'mock not allowed, a late event': { ...events(LAST_S + 1), allowMock: false } }),
  ...of(refusedMock(OFFLINE), { 'mock not allowed, two files': { ...files(), allowMock: false } }),
  ...of(lying(refusedMock(), 'kmsQuoteVerified'), { 'mock not allowed, a slug': { ...bySlug(), allowMock: false } }),
  ...of(refusedMock([...OFFLINE, ...UNANCHORED]), {
    'mock not allowed, no anchors': { ...files(), allowMock: false, manifest: emptyManifest },
  }),
  ...of(incompleteMock(UNASKED), {
    'mock not allowed, a node that is down': { ...byCid(), ...route([rpcUrl, refuse]), allowMock: false },
  }),
  ...of(unknownCode(...OFFLINE, ...UNANCHORED), { 'no anchors': { ...files(), manifest: emptyManifest } }),
  ...of(unknownCode(...OFFLINE, 'measurement'), {
    'only MRTD': withEnclave({ measurements: [{ mrTd: whole.mrTd }] }),
  }),
  ...of(unknownCode(...OFFLINE, 'config'), { 'no configuration': withEnclave({ configHashes: [] }) }),
  ...of(unknownCode('time-bound', 'config'), {
    'a late event and an anchor that is missing': {
      ...events(LAST_S + 1),
      manifest: withEnclave({ configHashes: [] }).manifest,
    },
  }),
  ...of(incomplete(UNASKED), {
    'a node that is down': { ...byCid(), ...route([rpcUrl, refuse]) },
    'a node of another chain': { ...byCid(), ...node({ eth_chainId: '0x1' }) },
    'only a contract on another chain': { ...byCid(), manifest: onChain(1), nodeChainId: 1 },
    'contracts on two chains, and a node of neither': { ...onTwoChains, ...node({ eth_chainId: '0x5' }) },
  }),
  ...of(incomplete(['event']), {
    'logs that are no list': { ...byCid(), ...node({ eth_getLogs: 'no' }) },
    'a node that does not answer, and no event due': {
      ...byCid(),
      ...node({ eth_getLogs: 'no' }),
      isEventDue: false,
    },
  }),
  ...of(incomplete(NO_COLLATERAL), { 'collateral that no gateway has': { ...byCid(), ...without(collateralCid) } }),
  ...of(incomplete([...OFFLINE, ...NO_COLLATERAL]), {
    'a file without collateral or gateway': { ...files(), collaterals: [] },
  }),
  ...of(incomplete(['time-bound', ...NO_COLLATERAL]), {
    'a late event of a receipt without its collateral': {
      ...byCid(),
      ...both(events(LAST_S + 1), without(collateralCid)),
    },
  }),
  ...of(incomplete(['blocks']), {
    'version 2: no gateway has the release block': { ...byCid(transaction), ...without(blockCid('release')) },
    'version 2: no gateway has the batch block': { ...byCid(transaction), ...without(blockCid('batch')) },
    'version 2: no gateway has the coordinator block': { ...byCid(transaction), ...without(blockCid('coordinator')) },
    'version 2: a gateway that sends another block': {
      ...byCid(transaction),
      ...exchange(blockCid('batch'), message.blocks.batch),
    },
    'a log: no gateway has the batch': { ...byCid(inLog), ...without(toCid(inLog.blocks.batch)) },
  }),
  ...of(incomplete(['cid', 'blocks', ...UNOPENED]), {
    'version 2: a CAR without its batch': toCar(message, { blocks: withoutBatch }),
  }),
  ...of(incomplete(['vault-policy', 'vault-rule', 'vault-approvals']), {
    'a vault: no gateway has the policy': { ...byCid(vault), ...without(policyCid) },
    'a vault: a gateway that sends another policy': { ...byCid(vault), ...exchange(policyCid, otherPolicy) },
  }),
  ...of(contradicted('receipt'), { 'a proof with the copy of another receipt': proofWith({ receipt: other.receipt }) }),
  ...of(contradicted('onchainBlockNumber', 'kmsQuoteVerified'), {
    'mock not allowed, a proof with the event in another block': {
      ...proofWith({ onchainBlockNumber: 13 }),
      allowMock: false,
    },
  }),
  ...of(contradicted('onchainBlockNumber'), {
    'a proof with the event in another block': proofWith({ onchainBlockNumber: 13 }),
  }),
  ...of(failed({ event: '' }), {
    'no event': withLogs(),
    'an event that was removed, and one of another contract': withLogs(
      toLog(honest, { removed: true }),
      toLog(honest, { address: `0x${'cd'.repeat(20)}` }),
    ),
    'an event that points elsewhere': withLogs(elsewhere),
    'an event that points elsewhere, though none was due': { ...withLogs(elsewhere), isEventDue: false },
  }),
  ...of(failed({ event: 'event_malformed' }), { 'an event that cannot be read': withLogs(unreadable) }),
  ...of(lying(failed({ event: '' }), 'status'), {
    'a proof that its service calls complete, and no event': proofOf('complete'),
  }),
  ...of(lying(failed({ event: '' }), 'ipfsCid'), {
    'a pending proof, and an event that points elsewhere': proofOf('pending_onchain', elsewhere),
  }),
  ...of(failed({ event: '', subject: '' }, [...NO_COLLATERAL, 'transaction']), {
    'an event that leads to the receipt of another transaction': {
      ...byTransaction,
      ...both(exchange(other.cid, other.bytes), withLogs(elsewhere)),
    },
  }),
  ...of(failed({ subject: '' }), {
    // Only a dishonest publisher can do this: both hashes point to the same, genuine receipt.
    'an event under another hash that leads to the receipt': {
      subject: unrelatedHash,
      ...node({ eth_getLogs: ({ topics }: { topics: (string | null)[] }) => [toLogAt(topics[2])] }),
    },
  }),
  ...of(lying(failed({ subject: '' }), 'txHash'), {
    'a proof of another transaction': proofWith({ txHash: `0x${'00'.repeat(32)}` }),
  }),
  ...of(lying(failed({ subject: '' }), 'chainId'), { 'a proof on another chain': proofWith({ chainId: 1 }) }),
  ...of(lying(failed({ subject: '' }), 'walletAddress'), {
    'a proof of another wallet': proofWith({ walletAddress: `0x${'00'.repeat(20)}` }),
  }),
  ...of(failed({ format: 'receipt_version_unsupported' }), {
    'a block that is no receipt': { subject: collateralCid },
  }),
  ...of(failed({ format: 'receipt_not_canonical' }), {
    'an event that leads to something else': {
      ...byTransaction,
      ...both(exchange(garbageCid, garbage), withLogs(toLog({ ...honest, cid: garbageCid }))),
    },
  }),
  ...of(lying(failed({ format: 'receipt_not_canonical' }), 'receipt'), {
    'a proof whose CID is that of something else': {
      ...bySlug(),
      ...both(exchange(garbageCid, garbage), proofWith({ ipfsCid: garbageCid })),
    },
  }),
  ...of(failed({ cid: '' }, UNASKED), {
    'a file that is named after another CID': { ...files(), subject: toFile(`${other.cid}.json`, honest.bytes) },
  }),
  ...of(failed({ digest: '', 'tx-hash': '' }, OFFLINE), { 'a receipt with another recipient': redirected }),
  ...of(failed({ 'quote-policy': 'tcb_status_not_accepted' }, OFFLINE), {
    'an outdated platform': { ...files(outdated), manifest: toManifest(outdated) },
  }),
  ...of(failed({ 'quote-policy': 'tcb_evaluation_too_old' }, OFFLINE), {
    'an evaluation that is not reached': withEnclave({ minimumTcbEvaluationDataNumber: 21 }),
  }),
  ...of(failed({ measurement: 'measurement_not_allowed' }, OFFLINE), {
    'other code': { ...files(otherCode), manifest },
  }),
  ...of(failed({ platform: 'platform_not_allowed' }, OFFLINE), {
    'a machine that is not listed': withEnclave({ platforms: [{ ppid: '00'.repeat(16) }] }),
  }),
  ...of(failed({ 'coordinator-revocation': 'certificate_revoked' }, OFFLINE), {
    'a revocation list that names the coordinator’s certificate authority': revocations({ revoked: ['ask'] }),
  }),
  ...of(failed({ reevaluation: '' }, OFFLINE), {
    'checked again by what changed': { ...files(), at: later, collaterals: [collateral, worsened] },
  }),
  ...of(failed({ opening: '' }, [...OFFLINE, 'digest', 'signature']), {
    'an opening of another signature': { ...toCar(message), ...toOpening(otherMessage) },
  }),
  ...of(failed({ opening: 'opening_malformed' }, [...OFFLINE, 'digest', 'signature']), {
    'an opening that is none': { ...toCar(message), opening: toFile('opening.json', encode('{}')) },
  }),
  ...of(failed({ opening: '' }, OFFLINE), {
    'an owner’s opening of another address of the same owner': { ...toCar(walletAddress), ...toOwner(vaultAddress) },
    'an owner’s opening with another owner': { ...toCar(walletAddress), ...toOwner(walletAddress, { subject: 'bob' }) },
    'an owner’s opening with another e-mail address': {
      ...toCar(vaultAddress),
      ...toOwner(vaultAddress, { email: 'bob@example.com' }),
    },
    'an owner’s opening of a transaction': { ...toCar(transaction), ...toOwner(walletAddress) },
  }),
  ...of(failed({ opening: 'opening_malformed' }, OFFLINE), {
    'an address with the opening of a message': { ...toCar(walletAddress), ...toOpening(message) },
    'an owner’s opening with a member more': { ...toCar(walletAddress), ...toOwner(walletAddress, { name: 'Alice' }) },
  }),
  ...of(failed({ opening: 'opening_malformed' }, [...OFFLINE, 'digest', 'signature']), {
    'a message with the opening of an owner': { ...toCar(message), ...toOwner(walletAddress) },
  }),
  ...of(failed({ log: 'not_in_manifest' }), {
    'a log: more witnesses of the reader’s own than cosigned': trusting([first, silent, third], 3),
    'no log, and witnesses of the reader’s own': trusting([first], 1, transaction),
  }),
  ...of(error('invalid_arguments'), {
    'a transaction without a node': { ...byTransaction, hasNode: false },
    // A site always has a service, which is a gateway too.
    'a CID without a gateway': { ...byCid(), ...offline, expectedOnPage: error('fetch_failed') },
    // A site names its contract along with its node.
    'a node without a contract to ask about': {
      ...byCid(),
      manifest: { ...manifest, contracts: [] },
      expectedOnPage: accepted,
    },
    'two receipts of one transaction': { ...byTransaction, ...both(withLogs(toLog(honest), elsewhere)) },
    'checked again without collateral of that time': { ...files(), at: later },
  }),
  ...of(error('receipt_not_canonical'), {
    'a file of something else': { ...offline, subject: toFile('page.html', garbage) },
    'a receipt with a line feed after it': {
      ...files(),
      subject: toFile('receipt.json', concatBytes(honest.bytes, encode('\n'))),
    },
  }),
  ...of(error('receipt_too_large'), {
    'a file beyond the bound': { ...files(), subject: toFile('receipt.json', new Uint8Array(262_145).fill(0x20)) },
  }),
  ...of(error('collateral_malformed'), {
    'notes in place of collateral': { ...files(), collaterals: [toFile('notes.json', encode('{}'))] },
  }),
  ...of(error('collateral_not_named'), {
    'the collateral of another receipt': { ...files(), collaterals: [toFile('other.json', other.collateral)] },
    'checked again with two collaterals': { ...files(), at: later, collaterals: [fresh, worsened] },
  }),
  ...of(error('car_mismatch'), {
    'version 2: a CAR with a block of another receipt': toCar(transaction, {
      blocks: { ...transaction.blocks, batch: message.blocks.batch },
    }),
  }),
  ...of(error('car_malformed'), {
    'version 2: a CAR with a byte after its end': {
      ...toCar(transaction),
      subject: toFile('receipt.car', Uint8Array.from([...toCar(transaction).subject.bytes, 0])),
    },
  }),
  ...of(error('fetch_failed'), {
    'gateways that are down': gateways(refuse),
    'gateways that send another receipt': gateways(() => new Response(other.bytes)),
    'a service that is down': service(() => json({}, 503)),
    'the proof of another slug': proofWith({ slug: 'A'.repeat(22) }),
    'a proof with another kind of CID': proofWith({ ipfsCid: 'Qm' }),
    'a proof whose receipt is nowhere but in its answer': { ...bySlug(), ...without(honest.cid) },
    'the receipt of another signature under the slug': {
      ...bySlug(transaction),
      ...exchange(transaction.cid, otherMessage.bytes),
    },
  }),
  ...of(error('chain_unavailable'), {
    'a transaction, of a node that is down': { ...byTransaction, ...route([rpcUrl, () => json({}, 503)]) },
    'a transaction, of a node of another chain': { ...byTransaction, ...node({ eth_chainId: '0x1' }) },
  }),
  ...of(error('event_not_found'), { 'no event for a transaction': { ...byTransaction, ...node({ eth_getLogs: [] }) } }),
  ...of(error('proof_not_found'), {
    'an unknown slug': service(() => json({ code: 'proof_not_found' }, 404)),
  }),
  ...of(error('proof_not_pinned'), {
    'a proof that is not pinned': proofWith({ status: 'pending_pin', ipfsCid: null, receipt: null }),
    'a proof that could not be pinned': proofWith({ status: 'pin_failed', ipfsCid: null, receipt: null }),
  }),
]

/** Each way to name a receipt, one case of each outcome, and the cases with a different result on the page. */
export const samples: readonly Subject[] = subjects.filter(
  ({ expected, expectedOnPage }, index) =>
    expected === accepted || expectedOnPage !== undefined || expected !== subjects[index - 1]?.expected,
)

/** The network of a case. */
export function createSubjectNetwork({ spoil, issue: issued = honest }: Subject): FakeNetwork {
  const network = createFakeNetwork(issued)
  spoil?.(network)
  return network
}

export function toSubjectManifest({ manifest: own, issue: issued = honest }: Subject): Manifest {
  return own ?? toManifest(issued)
}

/** The expected result of a case, in the form of `toFound`. Every other step passes. */
export function toWanted(expected: Expected) {
  if ('error' in expected) return expected
  const { verdict, conclusion, fail = {}, skip = [], pass = [], lies = [] } = expected
  // Steps after a missing block, or after bytes that are not a receipt, are skipped.
  const isCut = 'blocks' in fail || skip.includes('blocks')
  const unasked = isCut ? ['log'] : 'format' in fail ? [] : ['log', 'platform', 'coordinator-revocation']
  const isEventSeen = isCut || 'format' in fail || !('event' in fail || skip.includes('event'))
  const skipped = new Set<string>([...unasked, ...skip, ...(isEventSeen ? [] : ['time-bound'])])
  for (const id of [...Object.keys(fail), ...pass]) skipped.delete(id)
  const steps = [
    ...Object.entries(fail).map(([id, code]) => `${id} fail ${code}`.trim()),
    ...[...skipped].map((id) => `${id} skip`),
  ]
  return { verdict, conclusion, steps: steps.toSorted(), lies }
}

type Found = Pick<Outcome, 'verdict' | 'conclusion' | 'steps'> & { lies: readonly Pick<Claim, 'member'>[] }

export function toFound({ verdict, conclusion, steps, lies }: Found) {
  const lines = steps
    .filter(({ status }) => status !== 'pass')
    .map(({ id, status, code = '' }) => `${id} ${status} ${code}`.trim())
  return { verdict, conclusion, steps: lines.toSorted(), lies: lies.map(({ member }) => member) }
}
