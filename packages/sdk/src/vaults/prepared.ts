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
import type { OffChain } from '../client/parseOffChain.ts'
import { createVaultError } from './errors.ts'
import { toPolicyHash } from './vault.ts'

/** The content that a vault signs. */
export type VaultContent = { kind: 'transaction'; content: TxMetadata } | OffChainContent

export function withoutDigest({ digest: _, ...content }: OffChain): VaultContent {
  return content
}

/**
 * The rule that allows the content with the fewest approvals by passkeys, and how many it requires. Throws `policy_refused` if no rule does.
 * Uses the enclave's code, except for the time of a schedule, which only the service's sample decides. The service counts budgets.
 */
export function checkRequest(
  { address: vaultAddress, policy }: Pick<Prepared, 'address' | 'policy'>,
  content: VaultContent,
): { rule: number; approvals: number } {
  const request = toPolicyRequest(policy, content)
  const check = (rule?: number) => checkPolicy(policy, request, rule, { vaultAddress, nowMs: Date.now() })
  const verdict = check()
  if (!verdict.allowed) throw policyRefused(describeRefusal(policy, verdict).join(' '))
  if (isForPasskeys(policy, verdict.rule)) return verdict
  const others = policy.rules.flatMap((_, rule) => (isForPasskeys(policy, rule) ? check(rule) : []))
  const [best] = others.filter((one) => one.allowed).sort((left, right) => left.approvals - right.approvals)
  if (best === undefined) throw policyRefused('Only an agent may approve this.')
  return best
}

/** Only an agent can use a rule that needs the approval of its key. */
function isForPasskeys({ approvers, rules }: Policy, index: number): boolean {
  const { approvals = 0, approvers: listed = [] } = rules[index] ?? {}
  const passkeys = approvers.filter(({ type }, at) => type === 'passkey' && (listed === 'any' || listed.includes(at)))
  return approvals <= passkeys.length
}

export function policyRefused(details: string) {
  return createVaultError('policy_refused', 'the rules of the vault do not allow this', { details })
}

export function approvalsMissing(missing: number) {
  return createVaultError('approvals_missing', 'more approvals are needed', { details: `${missing} missing` })
}

function toPolicyRequest({ time: [source] = [] }: Policy, request: VaultContent): PolicyRequest {
  if (request.kind !== 'transaction') return request
  const { kind, content: txMetadata } = request
  // The latest possible time, so that this device's clock decides nothing.
  const sample: TimedSample | undefined = source && { source, timeMs: Number.MAX_SAFE_INTEGER }
  return { kind, txMetadata, ...(sample && { sample }) }
}

/**
 * The exact content that a vault signs, as plain JSON. `JSON.stringify` it and read it on another device with `parsePrepared`. It is not
 * encrypted.
 */
export type Prepared = VaultContent & {
  version: 1
  /** The vault's address. */
  address: Hex
  policy: Policy
  policyHash: string
  /** The hash of `content`, which the vault signs. */
  digest: Hex
  /** The index of the rule that allows it. The vault checks no other rule. */
  rule: number
  /** How many the rule requires. */
  approvals: number
  /** When its approvals expire, in milliseconds since 1970. */
  expiresMs: number
}

/** Policy and content, with escapes. */
const MAX_BYTES = 262_144
const MAX_DEPTH = 24
/** ECMA-262 §21.4.1.1: the latest valid Date. */
const MAX_DATE_MS = 8.64e15
const MEMBERS = [
  'version',
  'kind',
  'address',
  'policy',
  'policyHash',
  'content',
  'digest',
  'rule',
  'approvals',
  'expiresMs',
] as const

/** Computes the members that follow from content and policy. Throws `policy_refused`. */
export function createPrepared(
  content: VaultContent,
  { address, policy, expiresMs }: Pick<Prepared, 'address' | 'policy' | 'expiresMs'>,
): Prepared {
  const digest = toDigest(content)
  const { rule, approvals } = checkRequest({ address, policy }, content)
  const policyHash = toPolicyHash(policy)
  return { version: 1, ...content, address, policy, policyHash, digest, rule, approvals, expiresMs }
}

/**
 * Parses a prepared request of another device, as JSON text or as a value. Recomputes digest, policy hash and number of approvals, so
 * that the approval covers what the page shows. Throws `prepared_malformed`, `prepared_mismatch` and `policy_refused`.
 *
 * @example
 * const prepared = parsePrepared(await file.text())
 */
export function parsePrepared(input: unknown): Prepared {
  const value = typeof input === 'string' ? parseText(input) : input
  const { version, address, policy, policyHash, digest, rule, approvals, expiresMs, ...content } = readMembers(
    value,
    { required: MEMBERS },
    malformed,
  )
  if (version !== 1) throw malformed('version is unknown')
  if (!isLowerPrefixedHex(address, 20)) throw malformed('address')
  if (!isNatural(expiresMs) || expiresMs > MAX_DATE_MS) throw malformed('expiresMs')
  const prepared = read(() => {
    assertPolicy(policy)
    return createPrepared(parseContent(content), { address, policy, expiresMs })
  })
  for (const [name, claimed] of Object.entries({ policyHash, digest, rule, approvals })) {
    if (prepared[name as 'digest'] !== claimed) throw mismatch(name)
  }
  return prepared
}

/** Throws `prepared_expired` or `prepared_early` if an approval is no longer or not yet valid. */
export function assertInTime({ expiresMs }: Prepared, nowMs: number): void {
  if (expiresMs <= nowMs) {
    throw createVaultError('prepared_expired', 'it has expired')
  }
  if (expiresMs <= nowMs + MAX_APPROVAL_MS) return
  throw createVaultError('prepared_early', 'it ends more than 24 hours from now')
}

function parseText(text: string): unknown {
  const bytes = new TextEncoder().encode(text)
  return read(() => parseStrictJson(bytes, { maxLength: MAX_BYTES, maxDepth: MAX_DEPTH }))
}

function parseContent({ kind, content }: { kind: unknown; content: unknown }): VaultContent {
  if (kind === 'transaction') return { kind, content: parseTxMetadata(content) }
  return parseOffChainContent(kind, content, malformed)
}

/** As the enclave computes it. Throws for ambiguous content. */
function toDigest(request: VaultContent): Hex {
  return toPrefixedHex(request.kind === 'transaction' ? hashUnsignedTransaction(request.content) : hashContent(request))
}

/** Turns errors of parsing into `prepared_malformed`, except `policy_refused`. */
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
  return createVaultError('prepared_malformed', 'malformed prepared request', {
    details,
    cause,
  })
}

function mismatch(name: string) {
  const details = `${name} does not match the content`
  return createVaultError('prepared_mismatch', 'the prepared request was changed', { details })
}
