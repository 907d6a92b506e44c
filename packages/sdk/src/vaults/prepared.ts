import {
  assertPolicy,
  checkPolicy,
  describeRefusal,
  MAX_APPROVAL_MS,
  type Policy,
  type PolicyRequest,
  type TimedSample,
} from '@countersign/policy'
import {
  type Hex,
  hashContent,
  hashUnsignedTransaction,
  isLowerPrefixedHex,
  isNatural,
  type OffChainContent,
  parseOffChainContent,
  parseStrictJson,
  parseTxMetadata,
  readMembers,
  ServiceError,
  type TxMetadata,
  toPrefixedHex,
} from '@countersign/protocol'
import { createVaultError } from './errors.ts'
import { toPolicyHash } from './vault.ts'

/** What a vault is asked to sign. */
export type VaultContent = { kind: 'transaction'; content: TxMetadata } | OffChainContent

/**
 * How many approvals a policy asks for; throws `policy_refused` where no rule allows the request. It is the code that decides in the
 * enclave, but for the time: when a schedule lets a nonce through, only the service's sample says.
 */
export function checkRequest(policy: Policy, asked: VaultContent): number {
  const verdict = checkPolicy(policy, toPolicyRequest(policy, asked))
  if (verdict.allowed) return verdict.approvals
  const details = describeRefusal(policy, verdict).join(' ')
  throw createVaultError('policy_refused', 'the rules of the vault do not allow this', { details })
}

export function approvalsMissing(missing: number) {
  const details = missing === 1 ? '1 more approval is needed' : `${missing} more approvals are needed`
  return createVaultError('approvals_missing', 'more approvals are needed', { details })
}

function toPolicyRequest({ time: [source] = [] }: Policy, asked: VaultContent): PolicyRequest {
  if (asked.kind !== 'transaction') return asked
  const { kind, content: txMetadata } = asked
  // A sample at the end of all days: the clock of this device decides nothing.
  const sample: TimedSample | undefined = source && { source, timeMs: Number.MAX_SAFE_INTEGER }
  return { kind, txMetadata, ...(sample && { sample }) }
}

/**
 * What a vault is to sign, fixed to the last byte. It is plain JSON: `JSON.stringify` it, and read it on another device with
 * `parsePrepared`. Whoever gets it learns what is to be signed.
 */
export type Prepared = VaultContent & {
  version: 1
  /** Of the vault. */
  address: Hex
  policy: Policy
  policyHash: string
  /** What the vault signs: the hash of `content`. */
  digest: Hex
  /** How many the policy asks for. */
  approvals: number
  /** When the approvals of it end, in milliseconds since 1970. */
  expiresMs: number
}

/** Policy, content and what escaping may add. */
const MAX_BYTES = 262_144
const MAX_DEPTH = 24
/** ECMA-262 §21.4.1.1: a page that shows a later time than that fails instead. */
const MAX_DATE_MS = 8.64e15
const MEMBERS = [
  'version',
  'kind',
  'address',
  'policy',
  'policyHash',
  'content',
  'digest',
  'approvals',
  'expiresMs',
] as const

/** Puts together what follows from content and policy. Throws `policy_refused`. */
export function createPrepared(
  asked: VaultContent,
  { address, policy, expiresMs }: Pick<Prepared, 'address' | 'policy' | 'expiresMs'>,
): Prepared {
  const digest = toDigest(asked)
  const approvals = checkRequest(policy, asked)
  return { version: 1, ...asked, address, policy, policyHash: toPolicyHash(policy), digest, approvals, expiresMs }
}

/**
 * Reads what another device has prepared: its text, or the value of its JSON. Digest, policy hash and number of approvals are computed
 * again, so that what is approved is what is shown. Throws `prepared_malformed`, `prepared_mismatch` and `policy_refused`.
 *
 * @example
 * const prepared = parsePrepared(await file.text())
 */
export function parsePrepared(given: unknown): Prepared {
  const value = typeof given === 'string' ? parseText(given) : given
  const { version, address, policy, policyHash, digest, approvals, expiresMs, ...asked } = readMembers(
    value,
    { required: MEMBERS },
    malformed,
  )
  if (version !== 1) throw malformed('version is unknown')
  if (!isLowerPrefixedHex(address, 20)) throw malformed('address')
  if (!isNatural(expiresMs) || expiresMs > MAX_DATE_MS) throw malformed('expiresMs')
  const prepared = read(() => {
    assertPolicy(policy)
    return createPrepared(parseContent(asked), { address, policy, expiresMs })
  })
  for (const [name, claimed] of Object.entries({ policyHash, digest, approvals })) {
    if (prepared[name as 'digest'] !== claimed) throw mismatch(name)
  }
  return prepared
}

/** Throws `prepared_expired` where an approval of it would count no more, and `prepared_early` where it would not yet. */
export function assertInTime({ expiresMs }: Prepared, nowMs: number): void {
  if (expiresMs <= nowMs) {
    throw createVaultError('prepared_expired', 'this cannot be approved any more', { details: 'it has ended' })
  }
  if (expiresMs <= nowMs + MAX_APPROVAL_MS) return
  const details = 'it ends more than 24 hours from now'
  throw createVaultError('prepared_early', 'this cannot be approved yet', { details })
}

function parseText(text: string): unknown {
  const bytes = new TextEncoder().encode(text)
  return read(() => parseStrictJson(bytes, { maxLength: MAX_BYTES, maxDepth: MAX_DEPTH }))
}

function parseContent({ kind, content }: { kind: unknown; content: unknown }): VaultContent {
  if (kind === 'transaction') return { kind, content: parseTxMetadata(content) }
  return parseOffChainContent(kind, content, malformed)
}

/** As the enclave hashes it. Refuses what has no one reading. */
function toDigest(asked: VaultContent): Hex {
  return toPrefixedHex(asked.kind === 'transaction' ? hashUnsignedTransaction(asked.content) : hashContent(asked))
}

/** What cannot be read at all is malformed. A refusal by the policy stays one. */
function read<R>(parse: () => R): R {
  try {
    return parse()
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause
    if (cause.code === 'policy_refused' || cause.code === 'prepared_malformed') throw cause
    throw malformed(cause.details ?? cause.message, cause)
  }
}

function malformed(details: string, cause?: unknown) {
  return createVaultError('prepared_malformed', 'this is nothing that a vault could be asked to sign', {
    details,
    cause,
  })
}

function mismatch(name: string) {
  const details = `${name} does not follow from what is shown`
  return createVaultError('prepared_mismatch', 'this was tampered with', { details })
}
