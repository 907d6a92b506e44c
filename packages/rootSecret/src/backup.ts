import { hash } from 'node:crypto'
import {
  assertSettingsOf,
  type EnclaveSettings,
  isHex,
  type PeerEvidence,
  parseStrictJson,
  readMembers,
  toCanonicalJson,
  toHex,
} from '@countersign/protocol'
import { parsePeerEvidence } from './peerEvidence.ts'

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
