import { equalBytes } from '@countersign/protocol/core'
import { QuoteError } from '../errors.ts'
import type { QeReport } from './parseQuote.ts'
import { readJson } from './readJson.ts'
import { type IsvSvnLevel, toIsvSvnLevel } from './tcbInfo.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** The enclave that may sign TD quotes (Intel PCS API v4, "Get TDX QE Identity", `enclaveIdentity` version 2). */
export type QeIdentity = {
  issueDate: number
  nextUpdate: number
  tcbEvaluationDataNumber: number
  miscSelect: Bytes
  miscSelectMask: Bytes
  attributes: Bytes
  attributesMask: Bytes
  mrSigner: Bytes
  isvProdId: number
  tcbLevels: readonly IsvSvnLevel[]
}

const SGX_ATTRIBUTE_DEBUG = 0x02

export function parseQeIdentity(text: string): QeIdentity {
  const json = readJson(text, malformed)
  if (json.integer('version', 0xffff_ffff) !== 2) throw malformed('version is not 2')
  if (json.string('id') !== 'TD_QE') throw mismatch('the identity is not of the TD quoting enclave')
  return {
    issueDate: json.time('issueDate'),
    nextUpdate: json.time('nextUpdate'),
    tcbEvaluationDataNumber: json.integer('tcbEvaluationDataNumber', 0xffff_ffff),
    miscSelect: json.hex('miscselect', 4),
    miscSelectMask: json.hex('miscselectMask', 4),
    attributes: json.hex('attributes', 16),
    attributesMask: json.hex('attributesMask', 16),
    mrSigner: json.hex('mrsigner', 32),
    isvProdId: json.integer('isvprodid', 65_535),
    tcbLevels: json.objects('tcbLevels').map(toIsvSvnLevel),
  }
}

/** QVL 4.1.2.9.5–8 (evidence.md, section 6.2). DEBUG must be clear even if the mask ignores it. */
export function assertIsQuotingEnclave(report: QeReport, identity: QeIdentity) {
  if (!equalsUnderMask(report.miscSelect, identity.miscSelect, identity.miscSelectMask)) throw mismatch('MISCSELECT')
  if (!equalsUnderMask(report.attributes, identity.attributes, identity.attributesMask)) throw mismatch('ATTRIBUTES')
  if (((report.attributes[0] ?? 0) & SGX_ATTRIBUTE_DEBUG) !== 0) throw mismatch('debug enclave')
  if (!equalBytes(report.mrSigner, identity.mrSigner)) throw mismatch('MRSIGNER')
  if (report.isvProdId !== identity.isvProdId) throw mismatch('ISVPRODID')
}

function equalsUnderMask(actual: Bytes, expected: Bytes, mask: Bytes): boolean {
  return actual.every((byte, index) => (byte & (mask[index] ?? 0)) === expected[index])
}

function malformed(details: string) {
  return new QuoteError('qe_identity_malformed', 'malformed QE identity', { details })
}

function mismatch(details: string) {
  return new QuoteError('qe_identity_mismatch', 'not the expected quoting enclave', { details })
}
