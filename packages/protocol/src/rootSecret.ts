import { sha256, sha512 } from '@noble/hashes/sha2.js'
import { concatBytes } from './bytes.ts'
import { toCanonicalJson } from './canonicalJson.ts'
import type { EnclaveConfig } from './configHash.ts'
import { toField, toU32be } from './fields.ts'
import type { EnclaveSettings } from './settings.ts'
import { tags, toTagBytes } from './tags.ts'

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

/** What shows an enclave to its peer: a quote, what it was configured with, and Intel's collateral to judge the quote by. */
export type PeerEvidence = {
  quote: string
  config: EnclaveConfig
  collateral: Readonly<Record<string, string>>
}

/** Bytes that only the holder of a key can open (RFC 9180): the encapsulated key, 32 bytes, and the ciphertext. */
export type SealedBytes = { enc: string; ciphertext: string }

/** 32 bytes, fresh, for one transfer. */
export type ChallengeResponse = { challenge: string }

/** The quote is over `computeJoinerReportData`. */
export type TransferRequest = { challenge: string; nonce: string; publicKey: string; evidence: PeerEvidence }

/** The quote is over `computeDonorReportData`. */
export type TransferResponse = SealedBytes & { evidence: PeerEvidence }

export type RecoveryRequest = { nonce: string }

/** The quote is over `computeRecoveryReportData`. The settings match the hash in the configuration. */
export type RecoveryResponse = {
  publicKey: string
  backupHash: string
  evidence: PeerEvidence
  settings: EnclaveSettings
}

/** A share of the custodian at this place of the backup, sealed to the enclave's key by the custodian's. */
export type ShareRequest = SealedBytes & { index: number }

/** How many shares the enclave has, and how many it needs. */
export type ShareResponse = { held: number; needed: number }

/** Who may have the secret is part of a configuration: what its `rootSecret` member says. */
export function toRootSecretName(policyHash: string): string {
  return `attested:sha256:${policyHash}`
}

/** SHA-256 of the canonical JSON of a policy: which enclaves may hold a root secret, and who keeps its backup. */
export function hashRootSecretPolicy(policy: unknown): Bytes {
  return sha256(toCanonicalJson(policy))
}

/** One byte after the tag, so that a quote made as one side of a transfer is never one of the other side. */
const JOINER = Uint8Array.of(1)
const DONOR = Uint8Array.of(2)

export type JoinerReportDataParameters = {
  /** 32 bytes, of the donor. */
  challenge: Uint8Array
  /** 32 bytes, of the joiner. */
  nonce: Uint8Array
  /** 32 bytes: the joiner's X25519 key, made for this transfer. */
  publicKey: Uint8Array
  /** 32 bytes: `hashEnclaveConfig`. */
  configHash: Uint8Array
}

/** The 64 bytes of report data with which an enclave asks for the secret. They are also what the secret is sealed with. */
export function computeJoinerReportData(parameters: JoinerReportDataParameters): Bytes {
  const { challenge, nonce, publicKey, configHash } = parameters
  return sha512(
    concatBytes(
      toTagBytes(tags.keyTransfer),
      JOINER,
      toField('challenge', challenge, 32),
      toField('nonce', nonce, 32),
      toField('publicKey', publicKey, 32),
      toField('configHash', configHash, 32),
    ),
  )
}

export type DonorReportDataParameters = JoinerReportDataParameters & {
  /** 32 bytes: the encapsulated key, which is the donor's. */
  enc: Uint8Array
  /** 32 bytes: SHA-256 of the ciphertext. */
  ciphertextHash: Uint8Array
}

/** The 64 bytes of report data with which an enclave gives the secret. */
export function computeDonorReportData(parameters: DonorReportDataParameters): Bytes {
  const { challenge, nonce, publicKey, enc, ciphertextHash, configHash } = parameters
  return sha512(
    concatBytes(
      toTagBytes(tags.keyTransfer),
      DONOR,
      toField('challenge', challenge, 32),
      toField('nonce', nonce, 32),
      toField('publicKey', publicKey, 32),
      toField('enc', enc, 32),
      toField('ciphertextHash', ciphertextHash, 32),
      toField('configHash', configHash, 32),
    ),
  )
}

export type BackupReportDataParameters = {
  /** 32 bytes: SHA-256 of the canonical JSON of the backup's body. */
  backupHash: Uint8Array
  configHash: Uint8Array
}

/** The 64 bytes of report data with which an enclave vouches for a backup that it has made. */
export function computeBackupReportData({ backupHash, configHash }: BackupReportDataParameters): Bytes {
  return sha512(
    concatBytes(
      toTagBytes(tags.rootBackup),
      toField('backupHash', backupHash, 32),
      toField('configHash', configHash, 32),
    ),
  )
}

export type RecoveryReportDataParameters = {
  /** 32 bytes, of the custodian who asks. */
  nonce: Uint8Array
  /** 32 bytes: the X25519 key that shares are sealed to. */
  publicKey: Uint8Array
  /** 32 bytes: of the backup that the enclave was given. */
  backupHash: Uint8Array
  configHash: Uint8Array
}

/** The 64 bytes of report data with which an enclave asks custodians for their shares. */
export function computeRecoveryReportData(parameters: RecoveryReportDataParameters): Bytes {
  const { nonce, publicKey, backupHash, configHash } = parameters
  return sha512(
    concatBytes(
      toTagBytes(tags.rootRecovery),
      toField('nonce', nonce, 32),
      toField('publicKey', publicKey, 32),
      toField('backupHash', backupHash, 32),
      toField('configHash', configHash, 32),
    ),
  )
}

export type ShareContextParameters = {
  /** 32 bytes: `hashRootSecretPolicy` of the policy under which the backup was made. */
  policyHash: Uint8Array
  /** 32 bytes: `hashEnclaveConfig` of the enclave that made it, so that a share of real silicon is never one of a drill. */
  configHash: Uint8Array
  /** 32 bytes, by which the secret is recognised. */
  commitment: Uint8Array
  threshold: number
  /** The custodian's place in the policy, from 0. */
  index: number
}

/** What a share is sealed with to its custodian: it opens only as the share that it is, of the backup that it is of. */
export function toShareContext(parameters: ShareContextParameters): Bytes {
  const { policyHash, configHash, commitment, threshold, index } = parameters
  return concatBytes(
    toTagBytes(tags.rootShare),
    toField('policyHash', policyHash, 32),
    toField('configHash', configHash, 32),
    toField('commitment', commitment, 32),
    toU32be(threshold),
    toU32be(index),
  )
}

/** By this hash in the backup each share is known as soon as it comes. It gives nothing away: a share is as random as a key. */
export function hashShare({ index, share }: { index: number; share: Uint8Array }): Bytes {
  return sha256(concatBytes(toTagBytes(tags.rootShareHash), toU32be(index), toField('share', share, 33)))
}

export type SubmissionContextParameters = {
  backupHash: Uint8Array
  configHash: Uint8Array
  index: number
}

/** What a share is sealed with to the enclave: it counts only for this backup and this configuration. */
export function toSubmissionContext({ backupHash, configHash, index }: SubmissionContextParameters): Bytes {
  return concatBytes(
    toTagBytes(tags.rootSubmission),
    toField('backupHash', backupHash, 32),
    toField('configHash', configHash, 32),
    toU32be(index),
  )
}
