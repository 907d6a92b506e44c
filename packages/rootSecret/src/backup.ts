import { hash } from 'node:crypto'
import {
  assertCollateral,
  assertQuotePolicy,
  PolicyError,
  QuoteError,
  type QuotePolicy,
  tcbStatuses,
  type VerifiedQuote,
  type Verifier,
} from '@countersign/attestation'
import {
  assertEnclaveConfig,
  assertSettingsOf,
  computeBackupReportData,
  type EnclaveSettings,
  equalBytes,
  fromHex,
  hashEnclaveConfig,
  isHex,
  type PeerEvidence,
  parseStrictJson,
  readMembers,
  toCanonicalJson,
  toHex,
  toRootSecretName,
} from '@countersign/protocol/core'
import { type ParsedRootSecretPolicy, toQuotePolicy } from './policy.ts'

/** A custodian's share: to whose key it is sealed, and how it is known when it comes back. */
type BackupShare = { custodian: string; enc: string; ciphertext: string; hash: string }

/** What the enclave's quote over a backup covers. */
export type BackupBody = {
  version: typeof VERSION
  /** ISO 8601. The quote is judged as of this time: its collateral lapses long before the backup does. */
  createdAt: string
  /** Of the policy under which it was made. */
  policyHash: string
  configHash: string
  /** The settings behind the configuration's hash. Backups of version 0.1.0 have none. */
  settings?: EnclaveSettings
  threshold: number
  /** By which the secret is recognised. */
  commitment: string
  /** In the order of the policy's custodians. */
  shares: readonly BackupShare[]
}

/** A root secret in shares, each sealed to its custodian, with the quote of the enclave that made it. Public by nature. */
export type Backup = BackupBody & { evidence: PeerEvidence }

const VERSION = 'countersign-root-backup/1'
/** A share has the secret's 32 bytes and its place; the tag has 16. */
export const SEALED_SHARE_BYTES = 49
const MAX_SHARES = 16
const MAX_BYTES = 524_288

export class BackupError extends Error {
  override name = 'BackupError'
}

export function createBackupBody(parameters: Omit<BackupBody, 'version'>): BackupBody {
  return { version: VERSION, ...parameters }
}

/** SHA-256 of the canonical JSON of all but the evidence. */
export function hashBackup(backup: BackupBody | Backup): Uint8Array<ArrayBuffer> {
  const { evidence: _, ...body } = { evidence: undefined, ...backup }
  return new Uint8Array(hash('sha256', toCanonicalJson(body), 'buffer'))
}

/** Reads a backup from its file's text. Nothing of it is verified yet. */
export function parseBackup(text: string): Backup {
  const bytes = new TextEncoder().encode(text)
  if (bytes.length > MAX_BYTES) throw new BackupError('the backup is too large')
  try {
    return readBackup(parseStrictJson(bytes, { maxLength: MAX_BYTES }))
  } catch (cause) {
    throw new BackupError('the backup cannot be read: it is not one, or it is damaged', { cause })
  }
}

const MEMBERS = [
  'version',
  'createdAt',
  'policyHash',
  'configHash',
  'threshold',
  'commitment',
  'shares',
  'evidence',
] as const

const toTypeError = (details: string) => new TypeError(details)

function readBackup(value: unknown): Backup {
  const members = readMembers(value, { required: MEMBERS, optional: ['settings'] }, toTypeError)
  const { version, createdAt, policyHash, configHash, threshold, commitment, shares } = members
  if (version !== VERSION) throw new TypeError('version')
  if (typeof createdAt !== 'string' || new Date(createdAt).toISOString() !== createdAt) throw new TypeError('createdAt')
  if (!isHex(policyHash, 32) || !isHex(configHash, 32) || !isHex(commitment, 32)) throw new TypeError('hashes')
  if (!Array.isArray(shares) || shares.length > MAX_SHARES) throw new TypeError('shares')
  if (typeof threshold !== 'number' || !Number.isInteger(threshold) || threshold < 2 || threshold > shares.length) {
    throw new TypeError('threshold')
  }
  const evidence = parsePeerEvidence(members.evidence)
  const body = { createdAt, policyHash, configHash, threshold, commitment, shares: shares.map(readShare) }
  if (!Object.hasOwn(members, 'settings')) return { ...createBackupBody(body), evidence }
  const settings = members.settings as EnclaveSettings
  assertSettingsOf(evidence.config, settings)
  return { ...createBackupBody({ ...body, settings }), evidence }
}

function readShare(value: unknown): BackupShare {
  const required = ['custodian', 'enc', 'ciphertext', 'hash'] as const
  const { custodian, enc, ciphertext, hash } = readMembers(value, { required }, toTypeError)
  if (!isHex(custodian, 32) || !isHex(enc, 32) || !isHex(ciphertext, SEALED_SHARE_BYTES) || !isHex(hash, 32)) {
    throw new TypeError('share')
  }
  return { custodian, enc, ciphertext, hash }
}

export function toBackupFile(backup: Backup): string {
  return `${JSON.stringify(backup, undefined, 2)}\n`
}

/** For people to compare. */
export function nameBackup(backup: Backup): string {
  return toHex(hashBackup(backup))
}

/** Real quotes are 5 to 8 KiB. */
const MAX_QUOTE_BYTES = 65_536

/** Narrows a parsed value to evidence. Throws where a member is missing, unknown or of another form. */
export function parsePeerEvidence(value: unknown): PeerEvidence {
  if (typeof value !== 'object' || value === null) throw new TypeError('not evidence')
  const { quote, config, collateral, ...rest } = value as Record<string, unknown>
  if (Object.keys(rest).length > 0) throw new TypeError('not evidence')
  if (typeof quote !== 'string' || quote.length > 2 * MAX_QUOTE_BYTES || !/^(?:[0-9a-f]{2})+$/.test(quote)) {
    throw new TypeError('not evidence')
  }
  assertEnclaveConfig(config)
  // Text that is not well-formed Unicode has no hash, which should show here and not later.
  hashEnclaveConfig(config)
  assertCollateral(collateral)
  return { quote, config, collateral }
}

/**
 * The quote is genuine at this time, of a machine and code that the policy lists, and over this report data. What collateral
 * the peer sends is its own choice among what Intel has signed and what is still in date; a policy can ask for newer. Throws
 * `QuoteError` or `PolicyError`.
 */
export async function verifyPeerEvidence(
  { verifier, policy, at }: { verifier: Verifier; policy: QuotePolicy; at: Date },
  { evidence, reportData }: { evidence: PeerEvidence; reportData: Uint8Array },
): Promise<VerifiedQuote> {
  const { quote, collateral } = evidence
  assertCollateral(collateral)
  const verified = await verifier.verifyQuote({ quote: fromHex(quote), collateral, at })
  assertQuotePolicy(verified, { ...policy, reportData })
  return verified
}

/**
 * Verifies that a genuine enclave made this backup, on the expected kind of silicon (simulated silicon must not get the shares
 * of a real backup in a drill), and that it is unchanged since. With the policy under which it was made, also that it was an
 * enclave of that policy, for that policy's custodians. An enclave that is recovered under another policy does not have it;
 * then the custodians check that, before they submit a share.
 */
export async function verifyBackup(
  { verifier, isMock, madeUnder }: VerifyBackupParameters,
  backup: Backup,
): Promise<void> {
  const { config } = backup.evidence
  const configHash = hashEnclaveConfig(config)
  if (!equalBytes(configHash, fromHex(backup.configHash))) throw wrong('its configuration is another')
  if (config.rootSecret !== toRootSecretName(backup.policyHash)) throw wrong('its configuration has another policy')
  if ((config.quoteSource === 'mock') !== isMock) {
    throw wrong(isMock ? 'it is of real silicon, and no drill' : 'it is of simulated silicon')
  }
  if (new Set(backup.shares.map(({ custodian }) => custodian)).size !== backup.shares.length) {
    throw wrong('a custodian stands in it twice')
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
    throw wrong(`its quote does not hold (${details})`, cause)
  }
}

export type VerifyBackupParameters = {
  verifier: Verifier
  isMock: boolean
  madeUnder?: ParsedRootSecretPolicy | undefined
}

function assertOfPolicy(backup: Backup, { policy, policyHash }: ParsedRootSecretPolicy) {
  if (backup.policyHash !== policyHash) throw wrong('it was made under another policy')
  const { threshold, keys } = policy.custodians
  const custodians = backup.shares.map(({ custodian }) => custodian)
  if (backup.threshold !== threshold || custodians.join() !== keys.join()) throw wrong('it is for other custodians')
}

function wrong(text: string, cause?: unknown) {
  return new BackupError(`the backup is not accepted: ${text}`, cause === undefined ? {} : { cause })
}
