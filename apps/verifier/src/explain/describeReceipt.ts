import { parseQuote, parseReport } from '@countersign/attestation'
import { fromHex } from '@countersign/protocol'
import type { AttestationReceiptV1 } from '@countersign/receipt'
import { describeConfig } from '@countersign/verify'
import { describeQuote } from './describeQuote.ts'
import { describeReport } from './describeReport.ts'
import { describeCertificates, describeOr, type Line } from './lines.ts'

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
