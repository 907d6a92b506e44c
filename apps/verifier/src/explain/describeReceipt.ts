import { parseQuote, parseReport } from '@countersign/attestation'
import { parseCheckpoint, parseNote, parseTlogProof } from '@countersign/log'
import { describePolicy, type Policy, parsePolicy } from '@countersign/policy'
import { type AttestationReceiptV2, fromHex, ServiceError } from '@countersign/protocol'
import { type AttestationReceiptV1, type Blocks, parseBlock, type ReceiptFiles, toCid } from '@countersign/receipt'
import { describeConfig, describeSettings } from '@countersign/verify'
import { describeQuote, describeReport } from './describeEvidence.ts'
import { describeCertificates, describeOr, type Line, list } from './lines.ts'

export function describeReceipt(receipt: AttestationReceiptV1, cid: string): Line[] {
  const { transaction, signer, coordinator, entropy } = receipt
  const { selfAttestation } = coordinator
  return [
    'RECEIPT',
    ['version', receipt.version],
    ['CID', cid],
    '',
    'TRANSACTION',
    ['chain', transaction.chainId],
    ['hash', transaction.txHash],
    ['from', transaction.from],
    ['to', transaction.to],
    ['nonce', transaction.nonce],
    ['value in wei', transaction.value],
    ['data', transaction.data],
    ['gas', transaction.gas],
    ['max fee per gas', transaction.maxFeePerGas],
    ['max priority fee per gas', transaction.maxPriorityFeePerGas],
    ['digest signed', transaction.digestSigned],
    '',
    'TIMES',
    ['entropy sample', entropy.timestamp],
    ['coordinator’s report', selfAttestation.fetchedAt],
    ['signature', transaction.signedAt],
    '',
    'ENCLAVE',
    ['mode, as it states', signer.mode],
    ['key', signer.keyId],
    ['batch', `${signer.batch.sequence} of boot ${signer.batch.bootId}`],
    ['place in the batch', `${signer.inclusion.leafIndex + 1} of ${signer.inclusion.treeSize}`],
    ['TCB status, as it states', signer.tcbStatus],
    ['collateral', signer.collateral],
    ['event log', signer.eventLog === undefined ? 'none' : `${signer.eventLog.length} characters`],
    ...describeConfig(signer.config),
    '',
    ...describeOr('TDX QUOTE', () => describeQuote(parseQuote(fromHex(signer.quoteHex)))),
    '',
    'COORDINATOR',
    ['mode, as it states', coordinator.mode],
    ['key', coordinator.publicKey],
    ['configuration hash', selfAttestation.configHash],
    ...describeCertificates(Object.entries(selfAttestation.certificates).map(([name, der]) => [name, fromHex(der)])),
    '',
    ...describeOr('SEV-SNP REPORT', () => describeReport(parseReport(fromHex(selfAttestation.reportHex)))),
    '',
    'ENTROPY',
    ['source', entropy.source],
    ['key', entropy.publicKey],
    ['sequence', entropy.sequence],
    ['value', entropy.valueHex],
  ]
}

/** A receipt of version 2, with its blocks from a CAR file. */
export function describeAttestation(receipt: AttestationReceiptV2, { bytes, blocks }: ReceiptFiles): Line[] {
  const { signer, coordinator, entropy } = receipt
  const { statement, inclusion } = signer
  return [
    'RECEIPT',
    ['version', receipt.version],
    ['CID', toCid(bytes)],
    ['batch', signer.batch],
    ['release', coordinator.release],
    '',
    `WHAT WAS SIGNED: ${receipt.kind}`,
    ...Object.entries(receipt.subject).map(([name, value]): Line => [name, String(value)]),
    '',
    'STATEMENT',
    ['wallet', statement.address],
    ['key', statement.keyId],
    ['signature', statement.signedAt],
    ['session', statement.session],
    ['place in the batch', inclusion.leafIndex + 1],
    ...describeVault(receipt, blocks.policy),
    ...describeLog(receipt),
    '',
    'ENTROPY',
    ['source', entropy.source],
    ['key', entropy.publicKey],
    ['sequence', entropy.sequence],
    ['entropy sample', entropy.timestamp],
    ...describeBlock(blocks, 'batch', ({ quoteHex, bootId, sequence, treeSize, config, settings, logKey }) => [
      'BATCH',
      ['batch', `${sequence} of boot ${bootId}`],
      ['signatures in it', treeSize],
      ...describeConfig(config),
      ...describeSettings(settings),
      ['log', logKey ?? 'none'],
      '',
      ...describeOr('TDX QUOTE', () => describeQuote(parseQuote(fromHex(quoteHex)))),
    ]),
    ...describeBlock(blocks, 'coordinator', ({ reportHex, certificates, configHash, keys, fetchedAt }) => [
      'COORDINATOR',
      ['key', keys.ed25519],
      ['configuration hash', configHash],
      ['coordinator’s report', fetchedAt],
      ...describeCertificates(Object.entries(certificates).map(([name, der]) => [name, fromHex(der)])),
      '',
      ...describeOr('SEV-SNP REPORT', () => describeReport(parseReport(fromHex(reportHex)))),
    ]),
  ]
}

/** Prints a vault's rules if the matching block is present. */
function describeVault(
  { signer, policy, approvals = [] }: AttestationReceiptV2,
  block: Uint8Array | undefined,
): Line[] {
  if (signer.statement.policy === null) return []
  const { rule } = signer.statement
  return [
    '',
    'VAULT',
    ['rule', rule === null ? 'none' : rule + 1],
    ['policy', policy ?? 'not named'],
    ['policy hash', signer.statement.policy],
    ['approvals', approvals.map(({ approver }) => `passkey ${approver + 1}`).join(', ') || 'none shown'],
    ...(block === undefined ? [] : describeOr('RULES', () => describeRules(parsePolicy(block)))),
  ]
}

/** The log entry according to the proof. Only `verify` checks it. */
function describeLog({ log }: AttestationReceiptV2): Line[] {
  if (log === undefined) return []
  return ['', ...describeOr('LOG', () => describeProof(log))]
}

function describeProof(log: string): Line[] {
  const { index, checkpoint } = parseTlogProof(log)
  const { text, signatures } = parseNote(checkpoint)
  const { origin, size } = parseCheckpoint(text)
  return [
    'LOG',
    ['origin', origin],
    ['entry', index],
    ['size of the tree', size],
    ...list(
      'lines of signatures',
      signatures.map(({ name, keyId }) => `${name}+${keyId}`),
    ),
  ]
}

function describeRules(policy: Policy): Line[] {
  const { summary, rules } = describePolicy(policy)
  return [['rules', summary], ...rules.map((rule, index): Line => [`rule ${index + 1}`, rule])]
}

function describeBlock<Name extends 'batch' | 'coordinator'>(
  blocks: ReceiptFiles['blocks'],
  name: Name,
  describe: (block: Blocks[Name]) => Line[],
): Line[] {
  const bytes = blocks[name]
  if (bytes === undefined) return []
  try {
    return ['', ...describe(parseBlock(name, bytes))]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return ['', `${name.toUpperCase()}: not readable (${error.details ?? error.message})`]
  }
}
