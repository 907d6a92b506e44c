import { createSimulator } from '@countersign/attestation/simulator'
import { concatBytes, toCanonicalJson } from '@countersign/protocol'
import { createTamperings, tamper } from '../../../receipt/spec/tampered.ts'
import { issue, slug, toManifest } from '../issues.fake.ts'
import type { GivenFile } from '../loadCollateral.ts'
import { apiBaseUrl, rpcUrl } from '../network.fake.ts'
import { emptyManifest } from '../parseManifest.ts'
import { collateralFile, encode, files, honest, other, receiptFile, toFiles } from './honest.fake.ts'
import {
  accepted,
  type Expected,
  failed,
  noReceipt,
  OFFLINE,
  type SubjectRow,
  UNASKED,
  unbounded,
  unboundedOffline,
} from './subjectRow.fake.ts'

const { txHash } = honest.receipt.transaction
const tamperings = createTamperings(honest.receipt)

/** A name from the receipt's list of tampered neighbours. */
function tampered(name: string, expected: Expected): SubjectRow {
  const tampering = tamperings.find((entry) => entry.name === name)
  if (tampering === undefined) throw new Error(`there is no tampering ${name}`)
  const bytes = toCanonicalJson(tamper(honest.receipt, tampering))
  return { name, category: 'tampered', ...files, subject: { name: 'receipt.json', bytes }, expected }
}

const outdated = await issue({ quote: { status: 'OutOfDate' } })
const debuggable = await issue({ quote: { tdAttributes: new Uint8Array([1, 0, 0, 0x10, 0, 0, 0, 0]) } })
const migratable = await issue({ quote: { tdAttributes: new Uint8Array([0, 0, 0, 0x30, 0, 0, 0, 0]) } })
const otherCode = await issue({ quote: { mrtd: new Uint8Array(48).fill(0xee) } })
const oldSample = await issue({ sampleAgeMs: 65_001 })
const early = await issue({ sampleAgeMs: -5_001 })
const later = new Date('2028-06-15T12:00:00Z')
const laterSimulator = createSimulator({ at: later })
const fresh: GivenFile = { name: 'fresh.json', bytes: toCanonicalJson(laterSimulator.collateral()) }
const worsened: GivenFile = {
  name: 'worsened.json',
  bytes: toCanonicalJson(
    laterSimulator.collateral({ editTcbInfo: (text) => text.replaceAll('"UpToDate"', '"OutOfDate"') }),
  ),
}
const revoked: GivenFile = {
  name: 'revoked.json',
  bytes: toCanonicalJson(laterSimulator.collateral({ faults: { pckRevoked: true } })),
}

/** Receipts, files and manifests, over an honest network. */
export const receiptRows: readonly SubjectRow[] = [
  { name: 'two files', category: 'good', ...files, expected: unboundedOffline },
  {
    name: 'collateral with a line feed after it',
    category: 'good',
    ...files,
    collaterals: [{ name: 'collateral.json', bytes: concatBytes(honest.collateral, encode('\n')) }],
    expected: unboundedOffline,
  },
  {
    name: 'a file, its collateral from a gateway',
    category: 'good',
    subject: receiptFile,
    expected: { ...accepted, skip: ['cid'] },
  },
  {
    name: 'a file that is named after its CID',
    category: 'good',
    ...files,
    subject: { ...receiptFile, name: `${honest.cid}.json` },
    expected: unbounded(UNASKED),
  },
  { name: 'a CID', category: 'good', subject: honest.cid, expected: accepted },
  {
    name: 'a CID, without a node',
    category: 'good',
    subject: honest.cid,
    hasNode: false,
    expected: unbounded(UNASKED),
  },
  { name: 'an ipfs link', category: 'good', subject: `ipfs://${honest.cid}`, expected: accepted },
  {
    name: 'a link of some gateway',
    category: 'good',
    subject: `https://elsewhere.test/ipfs/${honest.cid}`,
    expected: accepted,
  },
  { name: 'a transaction', category: 'good', subject: txHash, expected: accepted },
  { name: 'a slug', category: 'good', subject: slug, expected: accepted },
  {
    name: 'a proof URL',
    category: 'good',
    subject: `${apiBaseUrl}/proof/${slug}`,
    hasSources: false,
    expected: accepted,
  },

  {
    name: 'two files, mock not allowed',
    category: 'mock',
    ...files,
    allowMock: false,
    expected: { verdict: 'mock', conclusion: 'mock', skip: OFFLINE },
  },
  {
    name: 'a CID, mock not allowed',
    category: 'mock',
    subject: honest.cid,
    allowMock: false,
    expected: { verdict: 'mock', conclusion: 'mock' },
  },
  {
    name: 'a slug, mock not allowed',
    category: 'mock',
    subject: slug,
    allowMock: false,
    expected: { verdict: 'mock', conclusion: 'mock', lies: ['kmsQuoteVerified'] },
  },
  {
    name: 'mock not allowed, node down',
    category: 'mock',
    subject: honest.cid,
    allowMock: false,
    spoil: ({ routes }) => void routes.push([rpcUrl, () => Promise.reject(new TypeError('Failed to fetch'))]),
    expected: { verdict: 'incomplete', conclusion: 'mock', skip: UNASKED },
  },
  {
    name: 'mock not allowed, collateral missing',
    category: 'mock',
    ...files,
    collaterals: [],
    allowMock: false,
    expected: {
      verdict: 'incomplete',
      conclusion: 'mock',
      skip: [...OFFLINE, 'collateral', 'quote', 'report-data', 'quote-policy', 'measurement'],
    },
  },
  {
    name: 'no anchors, mock not allowed',
    category: 'mock',
    ...files,
    manifest: emptyManifest,
    allowMock: false,
    expected: {
      verdict: 'mock',
      conclusion: 'mock',
      skip: [
        ...OFFLINE,
        'measurement',
        'config',
        'coordinator-policy',
        'coordinator-chip',
        'coordinator-measurement',
        'coordinator-config',
      ],
    },
  },
  {
    name: 'no anchors',
    category: 'mock',
    ...files,
    manifest: emptyManifest,
    expected: {
      verdict: 'mock',
      conclusion: 'unknown-code',
      skip: [
        ...OFFLINE,
        'measurement',
        'config',
        'coordinator-policy',
        'coordinator-chip',
        'coordinator-measurement',
        'coordinator-config',
      ],
    },
  },
  {
    name: 'a failure is one also where mock is not allowed',
    category: 'mock',
    ...toFiles(otherCode),
    allowMock: false,
    expected: failed({ measurement: 'measurement_not_allowed' }, OFFLINE),
  },

  tampered('another version', { error: 'receipt_malformed' }),
  tampered('a member too many', { error: 'receipt_malformed' }),
  tampered('another recipient', failed({ digest: '', 'tx-hash': '' }, OFFLINE)),
  tampered('another wallet', failed({ signature: '', statement: '' }, OFFLINE)),
  tampered('another transaction hash', failed({ 'tx-hash': '', statement: '' }, OFFLINE)),
  tampered('another time of signing', failed({ statement: '' }, OFFLINE)),
  tampered('a path cut short', failed({ inclusion: 'inclusion_malformed' }, [...OFFLINE, 'report-data'])),
  tampered('another collateral', { error: 'collateral_not_named' }),
  tampered(
    'a quote with other report data',
    failed({ quote: 'quote_signature_invalid' }, [...OFFLINE, 'report-data', 'quote-policy', 'measurement']),
  ),
  tampered(
    'another measurement stated',
    failed({ quote: '' }, [...OFFLINE, 'report-data', 'quote-policy', 'measurement']),
  ),
  tampered('another boot', failed({ 'report-data': '' }, OFFLINE)),
  tampered('another root secret', failed({ 'report-data': '', config: 'not_in_manifest' }, OFFLINE)),
  tampered(
    'bytes after the quote',
    failed({ 'quote-policy': 'trailing_bytes', measurement: 'trailing_bytes' }, OFFLINE),
  ),
  tampered('another sample', failed({ entropy: '', release: '' }, OFFLINE)),
  tampered(
    'another report',
    failed({ 'coordinator-report': 'report_signature_invalid', release: '' }, [
      ...OFFLINE,
      'coordinator-policy',
      'coordinator-chip',
      'coordinator-key',
      'coordinator-measurement',
    ]),
  ),
  tampered(
    'another certificate',
    failed({ 'coordinator-report': 'certificate_chain_invalid', release: '' }, [
      ...OFFLINE,
      'coordinator-policy',
      'coordinator-chip',
      'coordinator-key',
      'coordinator-measurement',
    ]),
  ),
  tampered(
    'another coordinator configuration',
    failed({ 'coordinator-key': '', 'coordinator-config': 'not_in_manifest', release: '' }, OFFLINE),
  ),
  tampered('another coordinator key', failed({ 'coordinator-key': '', release: '' }, OFFLINE)),
  tampered('another release', failed({ release: '' }, OFFLINE)),

  {
    name: 'a file of something else',
    category: 'garbage',
    ...files,
    subject: { name: 'page.html', bytes: encode('<!doctype html>') },
    collaterals: [],
    expected: { error: 'receipt_not_canonical' },
  },
  {
    name: 'a receipt with a line feed after it',
    category: 'garbage',
    ...files,
    subject: { name: 'receipt.json', bytes: concatBytes(honest.bytes, encode('\n')) },
    expected: { error: 'receipt_not_canonical' },
  },
  { name: 'a word', category: 'garbage', subject: 'hello', expected: { error: 'invalid_arguments' } },
  {
    name: 'a CID of another kind',
    category: 'garbage',
    subject: 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi',
    expected: { error: 'invalid_arguments' },
  },
  {
    name: 'a hash without 0x',
    category: 'garbage',
    subject: txHash.slice(2),
    expected: { error: 'invalid_arguments' },
  },
  {
    name: 'a link with credentials',
    category: 'garbage',
    subject: `https://user:secret@api.test/proof/${slug}`,
    expected: { error: 'invalid_arguments' },
  },
  {
    name: 'a block that is no receipt',
    category: 'garbage',
    subject: honest.receipt.signer.collateral,
    expected: noReceipt('receipt_version_unsupported'),
  },
  {
    name: 'notes in place of collateral',
    category: 'garbage',
    ...files,
    collaterals: [{ name: 'notes.json', bytes: encode('{}') }],
    expected: { error: 'collateral_malformed' },
  },
  {
    name: 'the collateral of another receipt',
    category: 'garbage',
    ...files,
    collaterals: [{ name: 'other.json', bytes: other.collateral }],
    expected: { error: 'collateral_not_named' },
  },
  {
    name: 'a receipt as collateral',
    category: 'garbage',
    ...files,
    collaterals: [{ name: 'other.json', bytes: other.bytes }],
    expected: { error: 'collateral_malformed' },
  },

  {
    name: 'an outdated platform',
    category: 'hardware state',
    ...toFiles(outdated),
    manifest: toManifest(outdated),
    expected: failed({ 'quote-policy': 'tcb_status_not_accepted' }, OFFLINE),
  },
  {
    name: 'an outdated platform that is accepted',
    category: 'hardware state',
    ...toFiles(outdated),
    manifest: toManifest(outdated),
    tcbStatuses: ['OutOfDate'],
    expected: unboundedOffline,
  },
  {
    name: 'a debuggable enclave',
    category: 'hardware state',
    ...toFiles(debuggable),
    manifest: toManifest(debuggable),
    expected: failed({ 'quote-policy': 'debug_enabled', measurement: 'debug_enabled' }, OFFLINE),
  },
  {
    name: 'a migratable enclave',
    category: 'hardware state',
    ...toFiles(migratable),
    manifest: toManifest(migratable),
    expected: failed({ 'quote-policy': 'attributes_not_allowed' }, OFFLINE),
  },
  {
    name: 'other code',
    category: 'hardware state',
    ...toFiles(otherCode),
    expected: failed({ measurement: 'measurement_not_allowed' }, OFFLINE),
  },

  {
    name: 'a sample that is too old',
    category: 'stale',
    ...toFiles(oldSample),
    manifest: toManifest(oldSample),
    expected: failed({ time: '' }, OFFLINE),
  },
  {
    name: 'a sample from after the signature',
    category: 'stale',
    ...toFiles(early),
    manifest: toManifest(early),
    expected: failed({ time: '' }, OFFLINE),
  },
  {
    name: 'judged again with collateral of that time',
    category: 'stale',
    ...files,
    at: later,
    collaterals: [collateralFile, fresh],
    expected: unboundedOffline,
  },
  {
    name: 'judged again by what changed',
    category: 'stale',
    ...files,
    at: later,
    collaterals: [collateralFile, worsened],
    expected: failed({ reevaluation: '' }, OFFLINE),
  },
  {
    name: 'judged again after a revocation',
    category: 'stale',
    ...files,
    at: later,
    collaterals: [collateralFile, revoked],
    expected: failed({ reevaluation: 'certificate_revoked' }, OFFLINE),
  },
  {
    name: 'judged again with collateral of another time',
    category: 'stale',
    ...files,
    at: new Date('2029-06-15T12:00:00Z'),
    collaterals: [collateralFile, fresh],
    expected: failed({ reevaluation: 'tcb_info_not_in_date' }, OFFLINE),
  },
  {
    name: 'judged again without collateral of that time',
    category: 'stale',
    ...files,
    at: later,
    expected: { error: 'invalid_arguments' },
  },
]
