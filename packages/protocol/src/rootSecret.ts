import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { toCanonicalJson } from './canonicalJson.ts'
import * as preimages from './preimages.ts'
import { type Preimage, toPreimage } from './tags.ts'

/*
 * How a root secret travels: from a running enclave to one that joins it, and through custodians' shares into one that is
 * recovered. Each call is a POST with a JSON body; nobody signs it, since quotes vouch for what it carries. Byte strings are
 * lower-case hex without a prefix.
 */

type Bytes = Uint8Array<ArrayBuffer>

/** The calls, and where each is. The first two are of an enclave that has the secret, the others of one that waits for it. */
export const rootSecretPaths = {
  challenge: '/key-transfer/challenge',
  transfer: '/key-transfer',
  recovery: '/recovery',
  share: '/recovery/share',
} as const

/** Who may have the secret is part of a configuration: what its `rootSecret` member says. */
export function toRootSecretName(policyHash: string): string {
  return `attested:sha256:${policyHash}`
}

/** SHA-256 of the canonical JSON of a policy: which enclaves may hold a root secret, and who keeps its backup. */
export function hashRootSecretPolicy(policy: unknown): Bytes {
  return sha256(toCanonicalJson(policy))
}

/** The 64 bytes of report data with which an enclave asks for the secret. They are also what the secret is sealed with. */
export function computeJoinerReportData(fields: Preimage<'keyTransfer'>): Bytes {
  return sha512(toPreimage(preimages.keyTransfer, fields))
}

/** The 64 bytes of report data with which an enclave gives the secret. The encapsulated key is the donor's. */
export function computeDonorReportData(fields: Preimage<'keyTransferReply'>): Bytes {
  return sha512(toPreimage(preimages.keyTransferReply, fields))
}

/** The 64 bytes of report data with which an enclave vouches for a backup that it has made: SHA-256 of its body's canonical JSON. */
export function computeBackupReportData(fields: Preimage<'rootBackup'>): Bytes {
  return sha512(toPreimage(preimages.rootBackup, fields))
}

/** The 64 bytes of report data with which an enclave asks custodians for their shares, sealed to its X25519 key. */
export function computeRecoveryReportData(fields: Preimage<'rootRecovery'>): Bytes {
  return sha512(toPreimage(preimages.rootRecovery, fields))
}

/**
 * What a share is sealed with to its custodian: it opens only as the share that it is, of the backup that it is of. The hash of the
 * configuration keeps a share of real silicon apart from one of a drill.
 */
export function toShareContext(fields: Preimage<'rootShare'>): Bytes {
  return toPreimage(preimages.rootShare, fields)
}

/** By this hash in the backup each share is known as soon as it comes. It gives nothing away: a share is as random as a key. */
export function hashShare(fields: Preimage<'rootShareHash'>): Bytes {
  return sha256(toPreimage(preimages.rootShareHash, fields))
}

/** What a share is sealed with to the enclave: it counts only for this backup and this configuration. */
export function toSubmissionContext(fields: Preimage<'rootSubmission'>): Bytes {
  return toPreimage(preimages.rootSubmission, fields)
}
