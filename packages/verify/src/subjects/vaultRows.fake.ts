import { toCanonicalJson } from '@countersign/protocol'
import { encodeReceiptCar, toCid } from '@countersign/receipt'
import { goldenVaults } from '../../../receipt/src/vaults.fake.ts'
import { issueGoldenV2, slug } from '../issues.fake.ts'
import { accepted, failed, incomplete, type SubjectRow, unboundedOffline } from './subjectRow.fake.ts'

const transaction = await issueGoldenV2(goldenVaults.transaction)
const offChain = await issueGoldenV2(goldenVaults['off-chain'])
const address = await issueGoldenV2(goldenVaults.address)
const scheduled = await issueGoldenV2(goldenVaults.scheduled)

const { approvals: _, ...stripped } = transaction.receipt
const strippedBytes = toCanonicalJson(stripped)
const policyCid = toCid(transaction.blocks.policy ?? new Uint8Array())

/** Receipts of vaults, and of addresses. */
export const vaultRows: readonly SubjectRow[] = [
  {
    name: 'a vault: a transaction by CID',
    category: 'good',
    issue: transaction,
    subject: transaction.cid,
    expected: accepted,
  },
  {
    name: 'a vault: a CAR, offline',
    category: 'good',
    issue: scheduled,
    subject: { name: 'receipt.car', bytes: encodeReceiptCar(scheduled) },
    hasSources: false,
    hasNode: false,
    expected: unboundedOffline,
  },
  {
    name: 'a vault: its address by slug',
    category: 'good',
    issue: address,
    subject: slug,
    expected: accepted,
  },
  {
    name: 'a vault: typed data, not opened',
    category: 'good',
    issue: offChain,
    subject: offChain.cid,
    expected: { ...accepted, skip: ['opening', 'digest', 'signature', 'vault-rule', 'vault-approvals'] },
  },
  {
    name: 'a vault: typed data, opened',
    category: 'opening',
    issue: offChain,
    subject: offChain.cid,
    opening: { name: 'opening.json', bytes: toCanonicalJson(offChain.opening) },
    expected: accepted,
  },
  {
    name: 'a vault: no gateway has the policy',
    category: 'missing block',
    issue: transaction,
    subject: transaction.cid,
    spoil: ({ blocks }) => void blocks.delete(policyCid),
    expected: incomplete(['vault-policy', 'vault-rule', 'vault-approvals']),
  },
  {
    name: 'a vault: a gateway that sends another policy',
    category: 'lying gateway',
    issue: transaction,
    subject: transaction.cid,
    spoil: ({ blocks }) => void blocks.set(policyCid, Uint8Array.from(scheduled.blocks.policy ?? [])),
    expected: incomplete(['vault-policy', 'vault-rule', 'vault-approvals']),
  },
  {
    name: 'a vault: the approvals stripped',
    category: 'tampered',
    issue: transaction,
    subject: { name: 'receipt.json', bytes: strippedBytes },
    hasNode: false,
    expected: failed({ 'vault-approvals': '' }, ['cid', 'event', 'transaction']),
  },
]
