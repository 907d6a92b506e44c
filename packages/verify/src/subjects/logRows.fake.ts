import { toCanonicalJson } from '@countersign/protocol'
import { encodeReceiptCar, parseBlock, toCid } from '@countersign/receipt'
import { issueGoldenV2, slug, toManifest } from '../issues.fake.ts'
import { accepted, failed, incomplete, OFFLINE, type SubjectRow, unboundedOffline } from './subjectRow.fake.ts'

const LOG = { witnesses: 3, quorum: 2, cosigners: [0, 2] } as const

const logged = await issueGoldenV2({ log: LOG })
const message = await issueGoldenV2({ log: LOG, signing: { kind: 'message' } })
const short = await issueGoldenV2({ log: { ...LOG, cosigners: [1] } })
const bare = await issueGoldenV2()

const [first = '', silent = '', third = ''] = parseBlock('batch', logged.blocks.batch).settings.log?.witnesses ?? []
const trusting = (witnesses: string[], quorum: number) => ({ ...toManifest(logged), log: { witnesses, quorum } })

const { log: _, ...stripped } = logged.receipt
/** A file of its own, offline but for the gateway: its CID is no longer that of the event. */
const toFileRow = (receipt: object) =>
  ({
    issue: logged,
    subject: { name: 'receipt.json', bytes: toCanonicalJson(receipt) },
    hasNode: false,
  }) as const

/** Receipts that are in a log. */
export const logRows: readonly SubjectRow[] = [
  { name: 'a log: a transaction by CID', category: 'good', issue: logged, subject: logged.cid, expected: accepted },
  {
    name: 'a log: a message by slug, not opened',
    category: 'good',
    issue: message,
    subject: slug,
    expected: { ...accepted, skip: ['opening', 'digest', 'signature'] },
  },
  {
    name: 'a log: a CAR, offline',
    category: 'good',
    issue: logged,
    subject: { name: 'receipt.car', bytes: encodeReceiptCar(logged) },
    hasSources: false,
    hasNode: false,
    expected: unboundedOffline,
  },
  {
    name: 'a log: witnesses of the reader’s own, who cosigned',
    category: 'manifest',
    issue: logged,
    subject: logged.cid,
    manifest: trusting([third, silent, first], 2),
    expected: accepted,
  },
  {
    name: 'a log: a witness of the reader’s own, who did not',
    category: 'manifest',
    issue: logged,
    subject: logged.cid,
    manifest: trusting([silent], 1),
    expected: failed({ log: 'not_in_manifest' }),
  },
  {
    name: 'a log: more of them than cosigned',
    category: 'manifest',
    issue: logged,
    subject: logged.cid,
    manifest: trusting([first, silent, third], 3),
    expected: failed({ log: 'not_in_manifest' }),
  },
  {
    name: 'no log, and witnesses of the reader’s own',
    category: 'manifest',
    issue: bare,
    subject: bare.cid,
    manifest: { ...toManifest(bare), log: { witnesses: [first], quorum: 1 } },
    expected: failed({ log: 'not_in_manifest' }),
  },
  {
    name: 'a log: fewer witnesses than the settings ask for',
    category: 'tampered',
    issue: short,
    subject: short.cid,
    expected: failed({ log: 'quorum_missing' }),
  },
  {
    name: 'a log: its proof stripped',
    category: 'tampered',
    ...toFileRow(stripped),
    expected: failed({ log: '' }, OFFLINE),
  },
  {
    name: 'a log: the proof of another receipt',
    category: 'tampered',
    ...toFileRow({ ...logged.receipt, log: message.receipt.log }),
    expected: failed({ log: 'inclusion_invalid' }, OFFLINE),
  },
  {
    name: 'no log, and the proof of another receipt',
    category: 'tampered',
    ...toFileRow({ ...bare.receipt, log: logged.receipt.log }),
    issue: bare,
    expected: failed({ log: '' }, OFFLINE),
  },
  {
    name: 'a log: no gateway has the batch',
    category: 'missing block',
    issue: logged,
    subject: logged.cid,
    spoil: ({ blocks }) => void blocks.delete(toCid(logged.blocks.batch)),
    expected: incomplete(['blocks', 'log']),
  },
]
