import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

/*
 * The transfer of a root secret: from a running enclave to a joining one, and through custodians' shares into an enclave in recovery. Each
 * call is a POST with a JSON body. Quotes authenticate the content, so calls are not signed. Byte strings are lower-case hex without a
 * prefix.
 */

type Bytes = Uint8Array<ArrayBuffer>

/** The enclave that has the secret serves the first two, the enclave in recovery the others. */
export const rootSecretPaths = {
  challenge: '/key-transfer/challenge',
  transfer: '/key-transfer',
  recovery: '/recovery',
  share: '/recovery/share',
} as const

/** The `rootSecret` member of a configuration: which enclaves may have the secret. */
export function toRootSecretName(policyHash: string): string {
  return `attested:sha256:${policyHash}`
}

/** SHA-256 of the canonical JSON of a policy: which enclaves may have a root secret, and the custodians of its backup. */
export function hashRootSecretPolicy(policy: unknown): Bytes {
  return sha256(toCanonicalJson(policy))
}

/** The 64 bytes of report data with which an enclave requests the secret. The secret is also sealed with them. */
export function computeJoinerReportData(fields: Preimage<'keyTransfer'>): Bytes {
  return sha512(toPreimage(preimages.keyTransfer, fields))
}

/** The 64 bytes of report data with which an enclave provides the secret. The encapsulated key is the donor's. */
export function computeDonorReportData(fields: Preimage<'keyTransferReply'>): Bytes {
  return sha512(toPreimage(preimages.keyTransferReply, fields))
}

/** The 64 bytes of report data of an enclave's quote over a backup: SHA-256 of its body's canonical JSON. */
export function computeBackupReportData(fields: Preimage<'rootBackup'>): Bytes {
  return sha512(toPreimage(preimages.rootBackup, fields))
}

/** The 64 bytes of report data with which an enclave requests custodians' shares, sealed to its X25519 key. */
export function computeRecoveryReportData(fields: Preimage<'rootRecovery'>): Bytes {
  return sha512(toPreimage(preimages.rootRecovery, fields))
}

/**
 * HPKE info that seals a share to its custodian. It binds the ciphertext to this share of this backup. The configuration's hash
 * separates shares of real hardware from those of a drill.
 */
export function toShareContext(fields: Preimage<'rootShare'>): Bytes {
  return toPreimage(preimages.rootShare, fields)
}

/** The hash that identifies a share in the backup. It reveals nothing, because a share is as random as a key. */
export function hashShare(fields: Preimage<'rootShareHash'>): Bytes {
  return sha256(toPreimage(preimages.rootShareHash, fields))
}

/** HPKE info that seals a share to the enclave, only for this backup and configuration. */
export function toSubmissionContext(fields: Preimage<'rootSubmission'>): Bytes {
  return toPreimage(preimages.rootSubmission, fields)
}
