import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { toField } from './fields.ts'
import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

type Bytes = Uint8Array<ArrayBuffer>

/** The first batch of a boot has no predecessor: 32 zero bytes. */
export function firstPreviousBatchHash(): Bytes {
  return new Uint8Array(32)
}

/** The 64 bytes of report data in a quote over a batch of signing statements. Each boot counts its batches from 0. */
export function computeTdxReportData(fields: Preimage<'tdxReport'>): Bytes {
  if (fields.treeSize === 0) {
    throw new ServiceError<ProtocolErrorCode>('invalid_integer', 'a batch has at least one statement')
  }
  return sha512(toPreimage(preimages.tdxReport, fields))
}

/** The hash by which the next batch refers to this one. The batches of one boot form a chain, so that gaps are visible. */
export function hashBatch(reportData: Uint8Array): Bytes {
  return sha256(toField('reportData', reportData, 64))
}

/** The 64 bytes of report data in a quote over the enclave's TLS key, with the caller's nonce. */
export function computeEnclaveAttestReportData(fields: Preimage<'enclaveAttest'>): Bytes {
  return sha512(toPreimage(preimages.enclaveAttest, fields))
}

/** The 64 bytes of report data in the coordinator's own report, over its Ed25519 key. */
export function computeSnpReportData(fields: Preimage<'snpReport'>): Bytes {
  return sha512(toPreimage(preimages.snpReport, fields))
}

/** Bytes of an ML-DSA-65 key and of a signature by it (FIPS 204, table 2). */
export const ML_DSA_65_KEY_BYTES = 1_952
export const ML_DSA_65_SIGNATURE_BYTES = 3_309

/** The 64 bytes of report data in the coordinator's report over both of its keys. */
export function computeSnpReportDataV2({
  mlDsa65,
  ...fields
}: Omit<Preimage<'snpReportV2'>, 'mlDsa65Hash'> & { mlDsa65: Uint8Array }): Bytes {
  const mlDsa65Hash = sha256(toField('mlDsa65', mlDsa65, ML_DSA_65_KEY_BYTES))
  return sha512(toPreimage(preimages.snpReportV2, { ...fields, mlDsa65Hash }))
}
