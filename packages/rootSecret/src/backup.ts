import { hash } from 'node:crypto'
import {
  assertQuotePolicy,
  PolicyError,
  QuoteError,
  type QuotePolicy,
  tcbStatuses,
  type VerifiedQuote,
  type Verifier,
} from '@countersign/attestation/core'
import {
  computeBackupReportData,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  parseStrictJson,
  toCanonicalJson,
  toHex,
  toRootSecretName,
} from '@countersign/protocol/core'
import {
  checked,
  hex,
  type Infer,
  list,
  literal,
  natural,
  type ObjectSchema,
  object,
  optional,
  parse,
  string,
} from '@countersign/protocol/schema'
import { areSettingsOf, type PeerEvidence, peerEvidence, SEALED_SHARE_BYTES, unreadSettings } from './messages.ts'
import { type ParsedRootSecretPolicy, toQuotePolicy } from './policy.ts'

const VERSION = 'countersign-root-backup/1'
const MAX_SHARES = 16
const MAX_BYTES = 524_288

/** The data that the enclave's quote over a backup covers. */
const backupBody = {
  version: literal(VERSION),
  /** ISO 8601. The quote is verified at this time, because its collateral expires long before the backup. */
  createdAt: checked(string(), (text) => new Date(text).toISOString() === text),
  /** The hash of its policy. */
  policyHash: hex(32),
  configHash: hex(32),
  /** The settings with the hash in the configuration. Backups of version 0.1.0 have none. */
  settings: optional(unreadSettings),
  threshold: checked(natural, (count) => count >= 2),
  /** Identifies the secret. */
  commitment: hex(32),
  /** In the order of the policy's custodians: the key of each, and the hash that identifies its share. */
  shares: list(object({ custodian: hex(32), enc: hex(32), ciphertext: hex(SEALED_SHARE_BYTES), hash: hex(32) })),
}
export type BackupBody = Infer<ObjectSchema<typeof backupBody>>

/** A root secret in shares, each sealed to its custodian, with the quote of the enclave that created it. It can be public. */
const wholeBackup = checked(
  object({ ...backupBody, evidence: peerEvidence }),
  ({ threshold, shares, settings, evidence }) =>
    threshold <= shares.length &&
    shares.length <= MAX_SHARES &&
    (settings === undefined || areSettingsOf({ evidence, settings })),
)
export type Backup = Infer<typeof wholeBackup>

export class BackupError extends Error {
  override name = 'BackupError'
}

export function createBackupBody(parameters: Omit<BackupBody, 'version'>): BackupBody {
  return { version: VERSION, ...parameters }
}

/** SHA-256 of the canonical JSON of everything except the evidence. */
export function hashBackup(backup: BackupBody | Backup): Uint8Array<ArrayBuffer> {
  const { evidence: _, ...body } = { evidence: undefined, ...backup }
  return new Uint8Array(hash('sha256', toCanonicalJson(body), 'buffer'))
}

/** Parses a backup file. Doesn't verify it. */
export function parseBackup(text: string): Backup {
  const bytes = new TextEncoder().encode(text)
  if (bytes.length > MAX_BYTES) throw new BackupError('the backup is too large')
  try {
    return parse(wholeBackup, parseStrictJson(bytes, { maxLength: MAX_BYTES }), (details) => new TypeError(details))
  } catch (cause) {
    throw new BackupError('the backup cannot be read: it is not one, or it is damaged', { cause })
  }
}

export function toBackupFile(backup: Backup): string {
  return `${JSON.stringify(backup, undefined, 2)}\n`
}

/** For people to compare. */
export function nameBackup(backup: Backup): string {
  return toHex(hashBackup(backup))
}

/**
 * Verifies that the quote is genuine at this time, from a machine and code in the policy, and over this report data. The peer chooses the
 * collateral among Intel's current ones; a policy can require newer ones. Throws `QuoteError` or `PolicyError`.
 */
export async function verifyPeerEvidence(
  { verifier, policy, at }: { verifier: Verifier; policy: QuotePolicy; at: Date },
  { evidence, reportData }: { evidence: PeerEvidence; reportData: Uint8Array },
): Promise<VerifiedQuote> {
  const { quote, collateral } = evidence
  const verified = await verifier.verifyQuote({ quote: fromHex(quote), collateral, at })
  assertQuotePolicy(verified, { ...policy, reportData })
  return verified
}

/**
 * Verifies that a genuine enclave on the expected kind of hardware created this backup, and that it is unchanged. A drill on simulated
 * hardware
 * must not get the shares of a real backup. With the backup's policy, also verifies that the enclave and custodians match it. An enclave that
 * is recovered under another policy doesn't have the old one, so the custodians check that before they submit a share.
 */
export async function verifyBackup(
  { verifier, isMock, madeUnder }: VerifyBackupParameters,
  backup: Backup,
): Promise<void> {
  const { config } = backup.evidence
  const configHash = hashEnclaveConfig(config)
  if (!equalBytes(configHash, fromHex(backup.configHash))) throw wrong('its configuration does not match its hash')
  if (config.rootSecret !== toRootSecretName(backup.policyHash)) throw wrong('its configuration has another policy')
  if ((config.quoteSource === 'mock') !== isMock) {
    throw wrong(isMock ? 'it was created on real hardware' : 'it was created on simulated hardware')
  }
  if (new Set(backup.shares.map(({ custodian }) => custodian)).size !== backup.shares.length) {
    throw wrong('it lists a custodian twice')
  }
  if (madeUnder !== undefined) assertOfPolicy(backup, madeUnder)
  const policy: QuotePolicy = madeUnder === undefined ? { statuses: tcbStatuses } : toQuotePolicy(madeUnder.policy)
  const reportData = computeBackupReportData({ backupHash: hashBackup(backup), configHash })
  try {
    await verifyPeerEvidence(
      { verifier, policy, at: new Date(backup.createdAt) },
      { evidence: backup.evidence, reportData },
    )
  } catch (cause) {
    if (!(cause instanceof QuoteError || cause instanceof PolicyError)) throw cause
    const details = cause.details === undefined ? cause.code : `${cause.code}, ${cause.details}`
    throw wrong(`its quote is not valid (${details})`, cause)
  }
}

export type VerifyBackupParameters = {
  verifier: Verifier
  isMock: boolean
  madeUnder?: ParsedRootSecretPolicy | undefined
}

function assertOfPolicy(backup: Backup, { policy, policyHash }: ParsedRootSecretPolicy) {
  if (backup.policyHash !== policyHash) throw wrong('it was created under another policy')
  const { threshold, keys } = policy.custodians
  const custodians = backup.shares.map(({ custodian }) => custodian)
  if (backup.threshold !== threshold || custodians.join() !== keys.join()) throw wrong('it is for other custodians')
}

function wrong(text: string, cause?: unknown) {
  return new BackupError(`the backup is not accepted: ${text}`, cause === undefined ? {} : { cause })
}
