import { toCanonicalJson } from './canonicalJson.ts'
import { type ProtocolErrorCode, ServiceError } from './errors.ts'
import { isNatural } from './fields.ts'
import { type Hex, isHex, isLowerPrefixedHex } from './hex.ts'
import { hashTreeLeaf } from './merkle.ts'
import { hasExactMembers } from './plainObject.ts'
import { isSignatureHex } from './signature.ts'
import { assertStatementV2, type StatementV2, toStatementV2Text } from './statementV2.ts'
import { tags } from './tags.ts'

/**
 * The enclave's statement about one signature: a leaf of the tree that a quote covers. Ethereum's values (`address`, `digest`, `signature`,
 * `txHash`) are lower-case hex with `0x`, all other bytes lower-case hex without.
 */
export type Statement = {
  type: typeof tags.signing
  /** 16 bytes: identifies the wallet key, but not its owner. */
  keyId: string
  /** 20 bytes, in lower case: no EIP-55 checksum. */
  address: Hex
  /** 65 bytes: the uncompressed secp256k1 key. */
  publicKey: string
  /** 32 bytes: the hash of the unsigned transaction. */
  digest: Hex
  /** 65 bytes: r ‖ s ‖ v. */
  signature: Hex
  /** 32 bytes: the hash of the signed transaction. */
  txHash: Hex
  chainId: number
  /** 32 bytes: SHA-256 of this signature's entropy sample. */
  entropyHash: string
  /** 32 bytes: the Ed25519 key of the calling coordinator. */
  coordinatorKey: string
  /** ISO 8601 in UTC with milliseconds: `2025-01-02T03:04:05.678Z`. */
  signedAt: string
}

/** Length in bytes of the members with `0x`. */
const ETHEREUM_MEMBERS = [
  ['address', 20],
  ['digest', 32],
  ['signature', 65],
  ['txHash', 32],
] as const
/** Length in bytes of the members without `0x`. */
const HEX_MEMBERS = [
  ['keyId', 16],
  ['publicKey', 65],
  ['entropyHash', 32],
  ['coordinatorKey', 32],
] as const
const MEMBERS = [...[...ETHEREUM_MEMBERS, ...HEX_MEMBERS].map(([name]) => name), 'type', 'chainId', 'signedAt'] as const

/**
 * Narrows to a statement with exactly these members, each in canonical form. Doesn't check that the members agree, which needs the
 * transaction.
 */
export function assertStatement(value: unknown): asserts value is Statement {
  if (!hasExactMembers(value, MEMBERS)) throw malformed('not exactly the expected members')
  if (value.type !== tags.signing) throw malformed('type')
  for (const [name, length] of ETHEREUM_MEMBERS) if (!isLowerPrefixedHex(value[name], length)) throw malformed(name)
  for (const [name, length] of HEX_MEMBERS) if (!isHex(value[name], length)) throw malformed(name)
  // SEC 1 §2.3.3: 04 marks an uncompressed point.
  if (!(value.publicKey as string).startsWith('04')) throw malformed('publicKey')
  if (!isSignatureHex((value.signature as string).slice(2))) throw malformed('signature')
  if (!isNatural(value.chainId) || value.chainId === 0) throw malformed('chainId')
  if (!isTime(value.signedAt)) throw malformed('signedAt')
}

/** The canonical JSON of a statement of either version. */
export function toStatementBytes(statement: Statement | StatementV2): Uint8Array<ArrayBuffer> {
  if (isOfVersion2(statement)) assertStatementV2(statement)
  else assertStatement(statement)
  return toCanonicalJson(statement)
}

/**
 * The canonical JSON of a well-formed statement, as text and without checks: its members in order, without escapes. For hot paths that hash
 * with a faster SHA-256 than this package has.
 */
export function toStatementText(statement: Statement | StatementV2): string {
  if (isOfVersion2(statement)) return toStatementV2Text(statement)
  const { address, chainId, coordinatorKey, digest, entropyHash, keyId } = statement
  const { publicKey, signature, signedAt, txHash, type } = statement
  return JSON.stringify({
    address,
    chainId,
    coordinatorKey,
    digest,
    entropyHash,
    keyId,
    publicKey,
    signature,
    signedAt,
    txHash,
    type,
  })
}

/** The leaf of a statement: SHA-256(0x00 ‖ canonical JSON). Statements of both versions share trees. */
export function hashLeaf(statement: Statement | StatementV2): Uint8Array<ArrayBuffer> {
  return hashTreeLeaf(toStatementBytes(statement))
}

function isOfVersion2(statement: Statement | StatementV2): statement is StatementV2 {
  return statement?.type === tags.signingV2
}

/** `Date` accepts the 31st of a short month and 24:00, and rolls over. */
function isTime(value: unknown): boolean {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value)) return false
  return new Date(value).getUTCDate() === Number(value.slice(8, 10))
}

function malformed(details: string) {
  return new ServiceError<ProtocolErrorCode>('statement_malformed', 'malformed statement', { details })
}
