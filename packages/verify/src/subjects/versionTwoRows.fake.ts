import { toCanonicalJson, withholdHalf } from '@countersign/protocol'
import { encodeBlock, encodeReceiptCar, parseBlock, type ReceiptFiles, toCid } from '@countersign/receipt'
import type { SimulatedAttestation } from '@countersign/receipt/simulator'
import { issueGoldenV2, slug } from '../issues.fake.ts'
import type { GivenFile } from '../loadCollateral.ts'
import type { FakeNetwork } from '../network.fake.ts'
import { emptyManifest } from '../parseManifest.ts'
import {
  accepted,
  failed,
  incomplete,
  noReceipt,
  OFFLINE,
  type SubjectRow,
  UNASKED,
  unbounded,
  unboundedOffline,
} from './subjectRow.fake.ts'

const transaction = await issueGoldenV2()
const authorization = await issueGoldenV2({ signing: { kind: 'authorization' } })
const message = await issueGoldenV2({ signing: { kind: 'message' } })
const typedData = await issueGoldenV2({ signing: { kind: 'typed-data' } })
const beacon = await issueGoldenV2({ isBeacon: true })
const other = await issueGoldenV2({ signedAt: new Date('2026-06-15T12:00:05.000Z'), signing: { kind: 'message' } })

const UNOPENED = ['opening', 'digest', 'signature'] as const

/** One file, and nothing else. */
function toCarRow(issue: SimulatedAttestation, changes: Partial<ReceiptFiles> = {}) {
  const bytes = encodeReceiptCar({ ...issue, ...changes })
  return { issue, subject: { name: 'receipt.car', bytes }, hasSources: false, hasNode: false } as const
}

function flipLastBit(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return bytes.with(-1, (bytes.at(-1) as number) ^ 1)
}

function toOpening({ opening }: SimulatedAttestation, half?: 'content' | 'signature'): GivenFile {
  if (opening === undefined) throw new Error('this kind has no opening')
  return { name: 'opening.json', bytes: toCanonicalJson(half === undefined ? opening : withholdHalf(opening, half)) }
}

/** The receipt with another release, which is named anew, so that everything fits but what was signed. */
function withRelease(issue: SimulatedAttestation, edit: (text: string) => string): ReceiptFiles {
  const release = new TextEncoder().encode(edit(new TextDecoder().decode(issue.blocks.release)))
  const bytes = encodeBlock('attestation', { ...issue.receipt, coordinator: { release: toCid(release) } })
  return { bytes, collateral: issue.collateral, blocks: { ...issue.blocks, release } }
}

const [classical, postQuantum] = parseBlock('release', transaction.blocks.release).signatures
const swapped = withRelease(transaction, (text) =>
  text.replace(classical.value, parseBlock('release', message.blocks.release).signatures[0].value),
)
const stripped = withRelease(transaction, (text) => text.replace(`,${JSON.stringify(postQuantum)}`, ''))
const strippedCid = toCid(stripped.bytes)

const { kind, subject } = authorization.receipt
if (kind !== 'authorization') throw new Error('the simulator signed an authorization')
const unsigned = toCanonicalJson({
  ...authorization.receipt,
  subject: { ...subject, signature: `${subject.signature.slice(0, -2)}1d` },
})
const unsignedCid = toCid(unsigned)

/** A gateway that has these blocks beside the honest ones. */
function serve({ blocks }: FakeNetwork, { bytes, blocks: given }: ReceiptFiles) {
  for (const block of [bytes, ...Object.values(given)]) blocks.set(toCid(block), Uint8Array.from(block))
}

/** Receipts of version 2. */
export const versionTwoRows: readonly SubjectRow[] = [
  {
    name: 'version 2: a transaction by CID',
    category: 'good',
    issue: transaction,
    subject: transaction.cid,
    expected: accepted,
  },
  { name: 'version 2: a transaction by slug', category: 'good', issue: transaction, subject: slug, expected: accepted },
  {
    name: 'version 2: an authorization by CID',
    category: 'good',
    issue: authorization,
    subject: authorization.cid,
    expected: accepted,
  },
  {
    name: 'version 2: a message by CID, not opened',
    category: 'good',
    issue: message,
    subject: message.cid,
    expected: { ...accepted, skip: UNOPENED },
  },
  {
    name: 'version 2: a message by slug, not opened',
    category: 'good',
    issue: message,
    subject: slug,
    expected: { ...accepted, skip: UNOPENED },
  },
  { name: 'version 2: a public beacon', category: 'good', issue: beacon, subject: beacon.cid, expected: accepted },
  { name: 'version 2: a CAR', category: 'good', ...toCarRow(transaction), expected: unboundedOffline },
  {
    name: 'version 2: a CAR that is named after its CID',
    category: 'good',
    ...toCarRow(transaction),
    subject: { ...toCarRow(transaction).subject, name: `${transaction.cid}.car` },
    expected: unbounded(UNASKED),
  },
  {
    name: 'version 2: a file, its blocks from a gateway',
    category: 'good',
    issue: transaction,
    subject: { name: 'receipt.json', bytes: transaction.bytes },
    expected: { ...accepted, skip: ['cid'] },
  },
  {
    name: 'version 2: mock not allowed',
    category: 'mock',
    issue: transaction,
    subject: transaction.cid,
    allowMock: false,
    expected: { verdict: 'mock', conclusion: 'mock' },
  },
  {
    name: 'version 2: nothing is trusted',
    category: 'manifest',
    ...toCarRow(transaction),
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
    name: 'an opening of a message, both halves',
    category: 'opening',
    ...toCarRow(message),
    opening: toOpening(message),
    expected: unboundedOffline,
  },
  {
    name: 'an opening of typed data, both halves',
    category: 'opening',
    issue: typedData,
    subject: typedData.cid,
    opening: toOpening(typedData),
    expected: accepted,
  },
  {
    name: 'an opening, the content alone',
    category: 'opening',
    ...toCarRow(message),
    opening: toOpening(message, 'signature'),
    expected: unbounded([...OFFLINE, 'signature']),
  },
  {
    name: 'an opening, the signature alone',
    category: 'opening',
    ...toCarRow(message),
    opening: toOpening(message, 'content'),
    expected: unbounded([...OFFLINE, 'digest', 'signature']),
  },
  {
    name: 'an opening of another signature',
    category: 'opening',
    ...toCarRow(message),
    opening: toOpening(other),
    expected: failed({ opening: '' }, [...OFFLINE, 'digest', 'signature']),
  },
  {
    name: 'an opening that is none',
    category: 'opening',
    ...toCarRow(message),
    opening: { name: 'opening.json', bytes: new TextEncoder().encode('{}') },
    expected: failed({ opening: 'opening_malformed' }, [...OFFLINE, 'digest', 'signature']),
  },
  {
    name: 'an opening of what is public',
    category: 'opening',
    ...toCarRow(transaction),
    opening: toOpening(message),
    expected: failed({ opening: '' }, OFFLINE),
  },

  {
    name: 'version 2: the second signature stripped',
    category: 'tampered',
    issue: transaction,
    subject: strippedCid,
    spoil: (network) => serve(network, stripped),
    expected: failed({ blocks: 'receipt_malformed' }),
  },
  {
    name: 'version 2: an authorization whose signature is none',
    category: 'tampered',
    issue: authorization,
    subject: unsignedCid,
    spoil: ({ blocks }) => void blocks.set(unsignedCid, unsigned),
    expected: noReceipt('receipt_malformed'),
  },
  {
    name: 'version 2: the signature of another release',
    category: 'tampered',
    ...toCarRow(transaction, swapped),
    expected: failed({ release: '' }, OFFLINE),
  },
  {
    name: 'version 2: a CAR with a block of another receipt',
    category: 'tampered',
    ...toCarRow(transaction, { blocks: { ...transaction.blocks, batch: message.blocks.batch } }),
    expected: { error: 'car_mismatch' },
  },
  {
    name: 'version 2: a CAR with one bit of a block changed',
    category: 'tampered',
    ...toCarRow(transaction),
    subject: { name: 'receipt.car', bytes: flipLastBit(toCarRow(transaction).subject.bytes) },
    expected: { error: 'car_mismatch' },
  },
  {
    name: 'version 2: a gateway that sends another block',
    category: 'lying gateway',
    issue: transaction,
    subject: transaction.cid,
    spoil: ({ blocks }) => void blocks.set(toCid(transaction.blocks.batch), Uint8Array.from(message.blocks.batch)),
    expected: incomplete(['blocks']),
  },
  ...(['release', 'batch', 'coordinator'] as const).map(
    (name): SubjectRow => ({
      name: `version 2: no gateway has the ${name} block`,
      category: 'missing block',
      issue: transaction,
      subject: transaction.cid,
      spoil: ({ blocks }) => void blocks.delete(toCid(transaction.blocks[name])),
      expected: incomplete(['blocks']),
    }),
  ),
  {
    name: 'version 2: a CAR without its batch',
    category: 'missing block',
    ...toCarRow(message, { blocks: { release: message.blocks.release, coordinator: message.blocks.coordinator } }),
    expected: incomplete(['cid', 'blocks', ...UNOPENED]),
  },
  {
    name: 'version 2: a CAR that is cut short',
    category: 'truncated',
    ...toCarRow(transaction),
    subject: { name: 'receipt.car', bytes: toCarRow(transaction).subject.bytes.slice(0, -1) },
    expected: { error: 'car_malformed' },
  },
  {
    name: 'version 2: a CAR with a byte after its end',
    category: 'garbage',
    ...toCarRow(transaction),
    subject: { name: 'receipt.car', bytes: Uint8Array.from([...toCarRow(transaction).subject.bytes, 0]) },
    expected: { error: 'car_malformed' },
  },
  {
    name: 'version 2: the receipt of another signature under the slug',
    category: 'other transaction',
    issue: transaction,
    subject: slug,
    spoil: (network) => {
      serve(network, other)
      network.blocks.set(toCid(transaction.bytes), Uint8Array.from(other.bytes))
    },
    expected: { error: 'fetch_failed' },
  },
]
