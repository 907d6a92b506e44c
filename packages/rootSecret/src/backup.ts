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

/** What the enclave's quote over a backup covers. */
const backupBody = {
  version: literal(VERSION),
  /** ISO 8601. The quote is judged as of this time: its collateral lapses long before the backup does. */
  createdAt: checked(string(), (text) => new Date(text).toISOString() === text),
  /** Of the policy under which it was made. */
  policyHash: hex(32),
  configHash: hex(32),
  /** The settings behind the configuration's hash. Backups of version 0.1.0 have none. */
  settings: optional(unreadSettings),
  threshold: checked(natural, (count) => count >= 2),
  /** By which the secret is recognised. */
  commitment: hex(32),
  /** In the order of the policy's custodians: to whose key each is sealed, and how it is known when it comes back. */
  shares: list(object({ custodian: hex(32), enc: hex(32), ciphertext: hex(SEALED_SHARE_BYTES), hash: hex(32) })),
}
export type BackupBody = Infer<ObjectSchema<typeof backupBody>>

/** A root secret in shares, each sealed to its custodian, with the quote of the enclave that made it. Public by nature. */
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
 * The quote is genuine at this time, of a machine and code that the policy lists, and over this report data. What collateral
 * the peer sends is its own choice among what Intel has signed and what is still in date; a policy can ask for newer. Throws
 * `QuoteError` or `PolicyError`.
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
