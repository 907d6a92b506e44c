import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { concatBytes } from './bytes.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { toField, toU32be, toU64be } from './fields.ts'
import { tags, toTagBytes } from './tags.ts'

type Bytes = Uint8Array<ArrayBuffer>

export type TdxReportDataParameters = {
  treeSize: number
  /** 32 bytes: the root over the leaves of the batch. */
  root: Uint8Array
  /** 16 bytes, random at each start of the enclave. */
  bootId: Uint8Array
  /** Counts the batches of one boot, from 0. */
  batchSequence: number
  /** 32 bytes: `hashBatch` of the batch before, or `firstPreviousBatchHash`. */
  previousBatchHash: Uint8Array
  /** 32 bytes: `hashEnclaveConfig`. */
  configHash: Uint8Array
}

/** What the first batch of a boot names as the one before it: 32 zero bytes. */
export function firstPreviousBatchHash(): Bytes {
  return new Uint8Array(32)
}

/** The 64 bytes of report data in a quote over a batch of signing statements. */
export function computeTdxReportData(parameters: TdxReportDataParameters): Bytes {
  const { treeSize, root, bootId, batchSequence, previousBatchHash, configHash } = parameters
  if (treeSize === 0) throw new ServiceError<ProtocolErrorCode>('invalid_integer', 'a batch has at least one statement')
  return sha512(
    concatBytes(
      toTagBytes(tags.tdxReport),
      toU32be(treeSize),
      toField('root', root, 32),
      toField('bootId', bootId, 16),
      toU64be(batchSequence),
      toField('previousBatchHash', previousBatchHash, 32),
      toField('configHash', configHash, 32),
    ),
  )
}

/** Names a batch to the one after it. The batches of one boot form a chain, so that a gap shows. */
export function hashBatch(reportData: Uint8Array): Bytes {
  return sha256(toField('reportData', reportData, 64))
}

export type EnclaveAttestReportDataParameters = {
  /** 32 bytes: SHA-256 of the TLS key. */
  tlsKeyHash: Uint8Array
  /** 32 bytes, chosen by the caller. */
  nonce: Uint8Array
  /** 32 bytes: `hashEnclaveConfig`. */
  configHash: Uint8Array
}

/** The 64 bytes of report data in a quote over the enclave's TLS key. */
export function computeEnclaveAttestReportData(parameters: EnclaveAttestReportDataParameters): Bytes {
  const { tlsKeyHash, nonce, configHash } = parameters
  return sha512(
    concatBytes(
      toTagBytes(tags.enclaveAttest),
      toField('tlsKeyHash', tlsKeyHash, 32),
      toField('nonce', nonce, 32),
      toField('configHash', configHash, 32),
    ),
  )
}

export type SnpReportDataParameters = {
  /** 32 bytes: the coordinator's Ed25519 key. */
  publicKey: Uint8Array
  /** 32 bytes: the hash of the coordinator's configuration. */
  configHash: Uint8Array
}

/** The 64 bytes of report data in the coordinator's own report. */
export function computeSnpReportData({ publicKey, configHash }: SnpReportDataParameters): Bytes {
  return sha512(
    concatBytes(toTagBytes(tags.snpReport), toField('publicKey', publicKey, 32), toField('configHash', configHash, 32)),
  )
}

export type SnpReportDataV2Parameters = {
  /** 32 bytes: the coordinator's Ed25519 key. */
  ed25519: Uint8Array
  /** 1,952 bytes: the coordinator's ML-DSA-65 key (FIPS 204). */
  mlDsa65: Uint8Array
  /** 32 bytes: the hash of the coordinator's configuration. */
  configHash: Uint8Array
}

/** Bytes of an ML-DSA-65 key and of a signature by it (FIPS 204, table 2). */
export const ML_DSA_65_KEY_BYTES = 1_952
export const ML_DSA_65_SIGNATURE_BYTES = 3_309

/** The 64 bytes of report data in the coordinator's report over both of its keys. */
export function computeSnpReportDataV2({ ed25519, mlDsa65, configHash }: SnpReportDataV2Parameters): Bytes {
  return sha512(
    concatBytes(
      toTagBytes(tags.snpReportV2),
      toField('ed25519', ed25519, 32),
      sha256(toField('mlDsa65', mlDsa65, ML_DSA_65_KEY_BYTES)),
      toField('configHash', configHash, 32),
    ),
  )
}
