import {
  type AttestationReceiptV2,
  type BatchBlock,
  type CoordinatorBlock,
  type ReleaseBlock,
  toCanonicalJson,
} from '@countersign/protocol'
import { type GivenBlocks, type StepId, toCid } from '@countersign/receipt'
import { flip, flipParity, type Tampering, tamper, toHighS, toOtherCid } from './tampered.ts'

type BlockName = 'attestation' | 'batch' | 'coordinator' | 'release'

/** The blocks of a golden receipt, parsed. */
export type GoldenBlocks = {
  attestation: AttestationReceiptV2
  batch: BatchBlock
  coordinator: CoordinatorBlock
  release: ReleaseBlock
}

/**
 * A change to one block of a golden receipt, and the step that must fail first. With `isNamedAnew`, the blocks above name the changed block
 * by its new CID.
 */
export type TamperingV2<Block = BlockName> = Tampering & { block: Block; isNamedAnew: boolean }

/** Changes one member of a block. */
export function changeIn<Block extends string>(block: Block, isNamedAnew: boolean) {
  return (name: string, step: StepId, path: (string | number)[], value?: unknown): TamperingV2<Block> => ({
    name,
    block,
    isNamedAnew,
    changes: [value === undefined ? { path } : { path, value }],
    step,
  })
}

/** Copies of the golden receipt of a transaction, with one fault each. */
export function createTamperingsV2(golden: GoldenBlocks): TamperingV2[] {
  const { attestation, batch, coordinator, release } = golden
  if (attestation.kind !== 'transaction') throw new Error('the golden receipt is of a transaction')
  const { subject, signer, entropy } = attestation
  const inReceipt = changeIn('attestation', false)
  const inBatch = changeIn('batch', true)
  const inCoordinator = changeIn('coordinator', true)
  const inRelease = changeIn('release', true)
  const [classical, postQuantum] = release.signatures
  return [
    inReceipt('version 1', 'format', ['version'], 'countersign-attestation/1'),
    inReceipt('version 3', 'format', ['version'], 'countersign-attestation/3'),
    inReceipt('a member too many', 'format', ['note'], 'hello'),
    inReceipt('a member too few', 'format', ['entropy']),
    inReceipt('an unknown kind', 'format', ['kind'], 'message'),
    inReceipt('a subject of another kind', 'format', ['kind'], 'off-chain'),
    inReceipt('a statement of version 1', 'format', ['signer', 'statement', 'type'], 'countersign/signing/v1'),
    inReceipt('hex in upper case', 'format', ['subject', 'txHash'], `0x${subject.txHash.slice(2).toUpperCase()}`),
    inReceipt('a line feed in the name of the source', 'format', ['entropy', 'source'], `${entropy.source}\n`),
    inReceipt('the size of the tree repeated', 'format', ['signer', 'inclusion', 'treeSize'], batch.treeSize),

    inReceipt('another batch', 'blocks', ['signer', 'batch'], toOtherCid(signer.batch)),
    inReceipt('another release', 'blocks', ['coordinator', 'release'], toOtherCid(attestation.coordinator.release)),
    changeIn('batch', false)('a batch under its old name', 'blocks', ['sequence'], batch.sequence + 1),
    changeIn('release', false)('a release under its old name', 'blocks', ['batch'], toOtherCid(release.batch)),
    changeIn('coordinator', false)(
      'a coordinator under its old name',
      'blocks',
      ['fetchedAt'],
      '2026-06-15T11:58:00.000Z',
    ),
    inRelease('a release of another batch', 'blocks', ['batch'], toOtherCid(release.batch)),
    inRelease('another coordinator', 'blocks', ['coordinator'], toOtherCid(release.coordinator)),
    inRelease('no Ed25519 signature', 'blocks', ['signatures'], [postQuantum]),
    inRelease('no ML-DSA-65 signature', 'blocks', ['signatures'], [classical]),
    inRelease('no signature', 'blocks', ['signatures'], []),
    inRelease('the Ed25519 signature twice', 'blocks', ['signatures'], [classical, classical]),
    inRelease('the ML-DSA-65 signature twice', 'blocks', ['signatures'], [postQuantum, postQuantum]),
    inRelease('a third signature', 'blocks', ['signatures'], [classical, postQuantum, classical]),
    inRelease('the signatures in another order', 'blocks', ['signatures'], [postQuantum, classical]),
    inRelease('the other algorithm named', 'blocks', ['signatures', 1, 'alg'], 'Ed25519'),
    inRelease('a weaker algorithm', 'blocks', ['signatures', 1, 'alg'], 'ML-DSA-44'),
    inRelease('an empty signature', 'blocks', ['signatures', 1, 'value'], ''),
    inBatch('a batch without its settings', 'blocks', ['settings']),
    inBatch('a batch of version 1', 'blocks', ['version'], 'countersign-batch/1'),
    inBatch('a log in the settings', 'blocks', ['settings', 'log'], {}),
    inCoordinator('a coordinator without its second key', 'blocks', ['keys', 'mlDsa65']),
    inCoordinator('a third key', 'blocks', ['keys', 'rsa'], '00'),

    inReceipt('another nonce', 'digest', ['subject', 'nonce'], subject.nonce + 1),
    inReceipt('another amount', 'digest', ['subject', 'value'], '1000000000000000001'),
    inReceipt('another digest', 'digest', ['subject', 'digestSigned'], `0x${'11'.repeat(32)}`),
    inReceipt('another wallet', 'signature', ['subject', 'from'], `0x${'22'.repeat(20)}`),
    inReceipt('another r', 'signature', ['subject', 'signature'], flip(subject.signature, 10)),
    inReceipt('the other parity', 'signature', ['subject', 'signature'], flipParity(subject.signature)),
    inReceipt('the high s', 'signature', ['subject', 'signature'], toHighS(subject.signature)),
    inReceipt(
      'another public key',
      'signature',
      ['signer', 'statement', 'publicKey'],
      flip(signer.statement.publicKey, 100),
    ),
    inReceipt('another transaction hash', 'tx-hash', ['subject', 'txHash'], flip(subject.txHash, 5)),

    inReceipt('another time of signing', 'statement', ['subject', 'signedAt'], '2026-06-15T12:00:01.000Z'),
    inReceipt('another time of issue', 'statement', ['issuedAt'], '2026-06-15T12:00:01.000Z'),
    inReceipt('another kind stated', 'statement', ['signer', 'statement', 'kind'], 'off-chain'),
    inReceipt('another subject stated', 'statement', ['signer', 'statement', 'subject'], '33'.repeat(32)),
    inReceipt('another address stated', 'statement', ['signer', 'statement', 'address'], `0x${'22'.repeat(20)}`),
    inReceipt('a policy stated', 'statement', ['signer', 'statement', 'policy'], '44'.repeat(32)),
    inReceipt('approvals stated', 'statement', ['signer', 'statement', 'approvals'], '44'.repeat(32)),
    inReceipt(
      'a day that does not exist',
      'statement',
      ['signer', 'statement', 'signedAt'],
      '2026-02-30T12:00:00.000Z',
    ),

    inReceipt('a path cut short', 'inclusion', ['signer', 'inclusion', 'path'], signer.inclusion.path.slice(1)),
    inReceipt('an index outside the tree', 'inclusion', ['signer', 'inclusion', 'leafIndex'], batch.treeSize),
    inRelease('another collateral', 'collateral', ['collateral'], toOtherCid(release.collateral)),
    inBatch('a quote with other report data', 'quote', ['quoteHex'], flip(batch.quoteHex, 2 * 570)),
    inBatch('a quote cut short', 'quote', ['quoteHex'], batch.quoteHex.slice(0, -2)),

    inReceipt('another key id', 'report-data', ['signer', 'statement', 'keyId'], flip(signer.statement.keyId, 0)),
    inReceipt(
      'a statement for another coordinator',
      'report-data',
      ['signer', 'statement', 'coordinatorKey'],
      '44'.repeat(32),
    ),
    inReceipt('another leaf', 'report-data', ['signer', 'inclusion', 'leafIndex'], signer.inclusion.leafIndex - 1),
    inReceipt('another path', 'report-data', ['signer', 'inclusion', 'path', 0], '55'.repeat(32)),
    inReceipt('another witness stated', 'report-data', ['signer', 'statement', 'witness'], '55'.repeat(32)),
    inBatch('another boot', 'report-data', ['bootId'], '66'.repeat(16)),
    inBatch('another place in the chain of batches', 'report-data', ['sequence'], batch.sequence + 1),
    inBatch('another batch before', 'report-data', ['previous'], '77'.repeat(32)),
    inBatch('a larger tree', 'report-data', ['treeSize'], batch.treeSize + 1),
    inBatch('another root secret', 'report-data', ['config', 'rootSecret'], 'file'),
    inBatch('bytes after the quote', 'quote-policy', ['quoteHex'], `${batch.quoteHex}01`),
    inBatch('other settings', 'config', ['settings', 'implementations'], [`0x${'88'.repeat(20)}`]),

    inReceipt('another sample', 'entropy', ['entropy', 'valueHex'], flip(entropy.valueHex, 3)),
    inReceipt('another signature of the sample', 'entropy', ['entropy', 'signatureHex'], flip(entropy.signatureHex, 3)),
    inReceipt('another time of the sample', 'entropy', ['entropy', 'timestamp'], '2026-06-15T11:59:59.000Z'),
    inReceipt('another name of the source', 'entropy', ['entropy', 'source'], 'another-satellite'),

    inCoordinator('another report', 'coordinator-report', ['reportHex'], flip(coordinator.reportHex, 2 * 0x60)),
    inCoordinator(
      'another certificate',
      'coordinator-report',
      ['certificates', 'ek'],
      flip(coordinator.certificates.ek, 900),
    ),
    inCoordinator('another configuration', 'coordinator-key', ['configHash'], '99'.repeat(32)),
    inCoordinator('another Ed25519 key', 'coordinator-key', ['keys', 'ed25519'], flip(coordinator.keys.ed25519, 3)),
    inCoordinator('another ML-DSA-65 key', 'coordinator-key', ['keys', 'mlDsa65'], flip(coordinator.keys.mlDsa65, 99)),
    inCoordinator('another time of the report', 'release', ['fetchedAt'], '2026-06-15T11:58:00.000Z'),
    inBatch('zeros after the quote', 'release', ['quoteHex'], `${batch.quoteHex}00`),
    inRelease('another Ed25519 signature', 'release', ['signatures', 0, 'value'], flip(classical.value, 3)),
    inRelease('another ML-DSA-65 signature', 'release', ['signatures', 1, 'value'], flip(postQuantum.value, 3)),
    inRelease('a blank ML-DSA-65 signature', 'release', ['signatures', 1, 'value'], '00'.repeat(3_309)),
  ]
}

/** Makes the changes on copies. Returns bytes for `checkReceipt`. */
export function tamperV2(
  golden: GoldenBlocks,
  { block, isNamedAnew, changes }: Pick<TamperingV2, 'block' | 'isNamedAnew' | 'changes'>,
): { bytes: Uint8Array<ArrayBuffer>; blocks: Required<Omit<GivenBlocks, 'policy'>> } {
  const changed = { ...golden, [block]: tamper(golden[block], { changes }) } as GoldenBlocks
  const batch = toCanonicalJson(changed.batch)
  const coordinator = toCanonicalJson(changed.coordinator)
  const names = (block === 'batch' && { batch: toCid(batch) }) || {}
  const ofCoordinator = (block === 'coordinator' && { coordinator: toCid(coordinator) }) || {}
  const release = toCanonicalJson({ ...changed.release, ...(isNamedAnew && { ...names, ...ofCoordinator }) })
  const { signer } = changed.attestation
  const isReleaseNew = isNamedAnew && block !== 'attestation'
  const bytes = toCanonicalJson({
    ...changed.attestation,
    ...(isNamedAnew && block === 'batch' && { signer: { ...signer, ...names } }),
    ...(isReleaseNew && { coordinator: { release: toCid(release) } }),
  })
  return { bytes, blocks: { release, batch, coordinator } }
}
