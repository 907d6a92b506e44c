import { parseTimestamp } from './entropy.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { isNatural } from './fields.ts'
import { type Hex, isHex, isLowerPrefixedHex } from './hex.ts'
import { type SignatureKind, signatureKinds } from './kinds.ts'
import { hasExactMembers } from './plainObject.ts'
import { MAX_RULES } from './stamp.ts'
import { tags } from './tags.ts'

/**
 * The enclave's statement about one signature of any kind. It has only a hash of the signed subject, so that parts of it can stay
 * private. Hex without `0x`, except for the address.
 */
export type StatementV2 = {
  type: typeof tags.signingV2
  kind: SignatureKind
  /** 16 bytes: identifies the wallet key, but not its owner. */
  keyId: string
  /** 20 bytes, in lower case: no EIP-55 checksum. */
  address: Hex
  /** 65 bytes: the uncompressed secp256k1 key. */
  publicKey: string
  /** 32 bytes: `hashSubject`. */
  subject: string
  /** 32 bytes: `hashWitness` of this signature's entropy sample. */
  witness: string
  /** 32 bytes: the hash of the vault's policy; null for a wallet without one. */
  policy: string | null
  /** The index of the rule that allowed the signature. Null for a wallet, and for an address. */
  rule: number | null
  /** 32 bytes: the hash of the approvals that the policy required; null without any. */
  approvals: string | null
  /** 32 bytes: the Ed25519 key of the calling coordinator. */
  coordinatorKey: string
  /**
   * What authorized the request: `cookie`, or 16 bytes that name the key of a browser (`toSessionName`).
   */
  session: string
  /** ISO 8601 in UTC with milliseconds: `2025-01-02T03:04:05.678Z`. */
  signedAt: string
}

/** Length in bytes of the members without `0x`. */
const HEX_MEMBERS = [
  ['keyId', 16],
  ['publicKey', 65],
  ['subject', 32],
  ['witness', 32],
  ['coordinatorKey', 32],
] as const
/** 32 bytes, or null. */
const OPTIONAL_HEX_MEMBERS = ['policy', 'approvals'] as const
const MEMBERS = [
  ...HEX_MEMBERS.map(([name]) => name),
  ...OPTIONAL_HEX_MEMBERS,
  'type',
  'kind',
  'address',
  'rule',
  'session',
  'signedAt',
] as const

/**
 * Narrows to a statement of version 2 with exactly these members, each in canonical form. Doesn't compare the members with the signed
 * subject.
 */
export function assertStatementV2(value: unknown): asserts value is StatementV2 {
  if (!hasExactMembers(value, MEMBERS)) throw malformed('not exactly the expected members')
  if (value.type !== tags.signingV2) throw malformed('type')
  if (!(signatureKinds as unknown[]).includes(value.kind)) throw malformed('kind')
  const { address, policy, publicKey, rule, session, signedAt } = value
  if (!isLowerPrefixedHex(address, 20)) throw malformed('address')
  for (const [name, length] of HEX_MEMBERS) if (!isHex(value[name], length)) throw malformed(name)
  for (const name of OPTIONAL_HEX_MEMBERS) if (value[name] !== null && !isHex(value[name], 32)) throw malformed(name)
  // SEC 1 §2.3.3: 04 marks an uncompressed point.
  if (!(publicKey as string).startsWith('04')) throw malformed('publicKey')
  if (rule !== null && (policy === null || !isNatural(rule) || rule >= MAX_RULES)) throw malformed('rule')
  if (session !== 'cookie' && session !== 'none' && !isHex(session, 16)) throw malformed('session')
  if (typeof signedAt !== 'string' || parseTimestamp(signedAt) === undefined) throw malformed('signedAt')
}

/** Like `toStatementText`, for both versions. */
export function toStatementV2Text(statement: StatementV2): string {
  const { address, approvals, coordinatorKey, keyId, kind, policy } = statement
  const { publicKey, rule, session, signedAt, subject, type, witness } = statement
  return JSON.stringify({
    address,
    approvals,
    coordinatorKey,
    keyId,
    kind,
    policy,
    publicKey,
    rule,
    session,
    signedAt,
    subject,
    type,
    witness,
  })
}

function malformed(details: string) {
  return new ServiceError<ProtocolErrorCode>('statement_malformed', 'malformed statement', { details })
}
