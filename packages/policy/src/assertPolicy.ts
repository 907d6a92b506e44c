import {
  fromHex,
  isEd25519Key,
  isEntropyForm,
  isEntropySetting,
  isHex,
  isMajority,
  isNatural,
  isOrigin,
  isPlainObject,
  MAX_RULES,
  MAX_WITNESSES,
  parseCanonicalJson,
  readMembers,
  ServiceError,
  toCanonicalJson,
} from '@countersign/protocol/core'
import { sha256 } from '@noble/hashes/sha2.js'
import { assertApprover } from './assertApprover.ts'
import { assertRule } from './assertRule.ts'
import { sortCanonical } from './canonicalOrder.ts'
import { VaultPolicyError } from './errors.ts'
import { lowerAddresses } from './lowerAddresses.ts'
import type { Approver, Budget, Policy, Rule, TimeSource } from './policy.ts'
import {
  assertAddress,
  assertChainId,
  assertDecimal,
  assertItems,
  assertList,
  assertNatural,
  malformed,
} from './policyFields.ts'

/** The largest policy, as canonical JSON. */
export const MAX_POLICY_BYTES = 16_384

const MAX_APPROVERS = 32
const MAX_BUDGETS = 8
/** Of a budget, apart from 0 for the vault's life: an hour to a year. */
const PERIOD_S = { min: 3_600, max: 31_536_000 }

/** Each source can have a different key, which takes milliseconds to check. */
const MAX_TIME_SOURCES = 8

type ReadPolicyOptions = {
  /** For a new vault: `time` has at most 8 sources. Existing vaults with more keep their key and their rules. */
  isNew?: boolean
}

/**
 * Narrows to a policy with exactly the known members in canonical form, every list in canonical order, and no contradictions. Rejects unknown
 * members, because an enclave must never ignore part of a rule.
 */
export function assertPolicy(value: unknown, { isNew = false }: ReadPolicyOptions = {}): asserts value is Policy {
  assertPolicyForm(value)
  // Before the slow checks.
  if (isNew) assertFewSources(value)
  assertKeys(value)
}

/**
 * Like `assertPolicy`, but without checking the keys of witnesses and time sources, which takes up to 20 milliseconds for each of hundreds.
 * For
 * long lists of policies. Check a policy with `assertPolicy` before using it.
 */
export function assertPolicyForm(value: unknown): asserts value is Policy {
  toBytes(value)
  const names = {
    required: ['version', 'log', 'approvers', 'rules'],
    optional: ['time', 'schedule', 'budgets'],
  } as const
  const { version, time, log, approvers, schedule, budgets, rules } = readMembers(value, names, malformed)
  if (version !== 1) throw malformed('version is unknown')
  if (log !== null) assertLog(log, budgets !== undefined)
  assertItems('approvers', approvers, assertApprover)
  if (approvers.length > MAX_APPROVERS) throw malformed(`approvers has more than ${MAX_APPROVERS}`)
  if (new Set(approvers.map(({ publicKey }) => publicKey)).size !== approvers.length) {
    throw malformed('approvers: repeated key')
  }
  assertList('rules', rules, assertRule)
  if (rules.length > MAX_RULES) throw malformed(`rules has more than ${MAX_RULES}`)
  for (const [index, rule] of rules.entries()) assertRuleApprovers(`rules[${index}]`, rule, approvers)
  assertTiming({ time, schedule, rules })
  if (budgets === undefined) {
    if (rules.some(({ kind }) => kind === 'spend')) throw malformed('a rule of kind spend needs budgets')
    if (approvers.some(({ type }) => type === 'key')) throw malformed('an approver of type key needs budgets')
    return
  }
  if (schedule !== undefined) throw malformed('a policy has budgets or a schedule, not both')
  if (log === null) throw malformed('budgets need a log')
  assertBudgets(budgets, rules)
  assertBesideBudgets(rules, approvers)
}

/** Parses a policy block: canonical JSON of at most 16 KiB. */
export function parsePolicy(bytes: Uint8Array, options?: ReadPolicyOptions): Policy {
  if (bytes.length > MAX_POLICY_BYTES) throw tooLarge()
  let value: unknown
  try {
    value = parseCanonicalJson(bytes, { maxBytes: MAX_POLICY_BYTES })
  } catch (cause) {
    const details = cause instanceof ServiceError ? cause.details : undefined
    throw new VaultPolicyError('vault_policy_not_canonical', 'expected a policy in canonical JSON', { details, cause })
  }
  assertPolicy(value, options)
  return value
}

/** Encodes a policy block: canonical JSON (RFC 8785). */
export function toPolicyBytes(policy: Policy): Uint8Array<ArrayBuffer> {
  assertPolicy(policy)
  return toBytes(policy)
}

/**
 * SHA-256 of a policy's block. The vault's key is derived from it, and the block's CID has it.
 *
 * @example
 * toVaultKeyInfo({ owner, policyHash: hashPolicy(policy) })
 */
export function hashPolicy(policy: Policy): Uint8Array<ArrayBuffer> {
  return sha256(toPolicyBytes(policy))
}

/**
 * Checks a policy and returns it in canonical form: addresses in lower case, every list sorted. An approver's index refers to the
 * returned policy.
 */
export function createPolicy(policy: Policy): Policy {
  const normalised = normalisePolicy(policy)
  assertPolicy(normalised)
  return normalised
}

/** Does the same without checking the policy. Throws `vault_policy_malformed` for an address with a wrong checksum (EIP-55). */
export function normalisePolicy(value: unknown): unknown {
  const lowered = lowerAddresses(value)
  try {
    return sortLists(moveApprovers(lowered))
  } catch (cause) {
    throw malformed('JSON cannot represent it without loss', cause)
  }
}

/** Rules name approvers by index, so sorting the approvers changes the indexes. */
function moveApprovers(policy: unknown): unknown {
  if (!isPlainObject(policy)) return policy
  const { approvers, rules } = policy
  if (!Array.isArray(approvers) || !Array.isArray(rules)) return policy
  const given = approvers.map(sortLists)
  const sorted = sortCanonical(given)
  const move = (index: unknown) => (isNatural(index) && index < given.length ? sorted.indexOf(given[index]) : index)
  const moveRule = (rule: unknown) =>
    isPlainObject(rule) && Array.isArray(rule.approvers) ? { ...rule, approvers: rule.approvers.map(move) } : rule
  return { ...policy, approvers: sorted, rules: rules.map(moveRule) }
}

/** Innermost first, because the order of a list depends on the bytes of its items. */
function sortLists(value: unknown): unknown {
  if (Array.isArray(value)) return sortCanonical(value.map(sortLists))
  if (typeof value !== 'object' || value === null) return value
  // Drops undefined members.
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return Object.fromEntries(members.map(([name, member]) => [name, sortLists(member)]))
}

/** The approvers of a rule exist, and there are enough of them. */
function assertRuleApprovers(path: string, { approvals, approvers: indexes }: Rule, approvers: readonly Approver[]) {
  const count = indexes === 'any' ? approvers.length : indexes.length
  if (approvals > count) throw malformed(`${path}.approvals is above the number of approvers`)
  if (indexes !== 'any' && indexes.some((index) => index >= approvers.length)) {
    throw malformed(`${path}.approvers: no such approver`)
  }
}

function assertBudgets(budgets: unknown, rules: readonly Rule[]): void {
  assertList('budgets', budgets, assertBudget)
  if (budgets.length > MAX_BUDGETS) throw malformed(`budgets has more than ${MAX_BUDGETS}`)
  const names = budgets.map(({ chainId, token, periodS }) => `${chainId} ${token} ${periodS}`)
  if (new Set(names).size !== names.length) throw malformed('budgets: two of one asset and period')
  const spending = rules.filter((rule) => rule.kind === 'spend')
  if (spending.length === 0) throw malformed('budgets need a rule of kind spend')
  for (const { chainIds, forms } of spending) {
    if (!forms.includes('coin') && !forms.includes('transfer')) continue
    // The fee of a transaction is paid with the chain's coin.
    const isMissing = (id: number) => !budgets.some(({ chainId, token }) => chainId === id && token === null)
    if (chainIds.some(isMissing)) throw malformed('the forms coin and transfer need a budget for the coin of the chain')
  }
}

function assertBudget(path: string, value: unknown): asserts value is Budget {
  const names = { required: ['chainId', 'token', 'limit', 'periodS'] } as const
  const { chainId, token, limit, periodS } = readMembers(value, names, (details) => malformed(`${path}: ${details}`))
  assertChainId(`${path}.chainId`, chainId)
  if (token !== null) assertAddress(`${path}.token`, token)
  assertDecimal(`${path}.limit`, limit)
  assertNatural(`${path}.periodS`, periodS)
  if (periodS !== 0 && (periodS < PERIOD_S.min || periodS > PERIOD_S.max)) {
    throw malformed(`${path}.periodS is neither 0 nor from ${PERIOD_S.min} to ${PERIOD_S.max}`)
  }
}

/** Without approval by a passkey, other rules could spend what the budgets limit. */
function assertBesideBudgets(rules: readonly Rule[], approvers: readonly Approver[]): void {
  for (const [index, rule] of rules.entries()) {
    if (rule.kind === 'spend') continue
    const isByPasskeys = rule.approvers !== 'any' && rule.approvers.every((at) => approvers[at]?.type === 'passkey')
    if (!isByPasskeys || rule.approvals === 0) {
      throw malformed(`rules[${index}]: beside budgets, other rules need approval by passkeys that they list`)
    }
  }
}

function assertLog(value: unknown, hasBudgets: boolean): void {
  const names = { required: ['witnesses', 'quorum'], optional: ['origin'] } as const
  const { origin, witnesses, quorum } = readMembers(value, names, (details) => malformed(`log: ${details}`))
  if (hasBudgets !== (origin !== undefined)) throw malformed('log.origin belongs to budgets')
  if (origin !== undefined && !isOrigin(origin)) throw malformed('log.origin is malformed')
  assertList('log.witnesses', witnesses, assertWitness)
  if (witnesses.length > MAX_WITNESSES) throw malformed('log has more than 32 witnesses')
  assertNatural('log.quorum', quorum, 1)
  // With half of them or fewer, two histories could each have a quorum.
  if (!isMajority(quorum, witnesses.length)) throw malformed('log.quorum is not a majority of the witnesses')
}

function assertWitness(path: string, value: unknown): asserts value is string {
  if (!isHex(value, 32)) throw noWitness(path)
}

/** Checks the relations between members. */
function assertKeys({ log, time = [] }: Policy): void {
  for (const [index, key] of (log?.witnesses ?? []).entries()) {
    if (!isEd25519Key(fromHex(key))) throw noWitness(`log.witnesses[${index}]`)
  }
  for (const [index, source] of time.entries()) {
    if (!isEntropySetting(source)) throw noSource(`time[${index}]`)
  }
}

function assertFewSources({ time = [] }: Policy): void {
  if (time.length <= MAX_TIME_SOURCES) return
  throw malformed(`time of a new vault has more than ${MAX_TIME_SOURCES} sources`)
}

function assertTiming({ time, schedule, rules }: { time: unknown; schedule: unknown; rules: readonly Rule[] }): void {
  if (schedule === undefined) {
    if (time !== undefined) throw malformed('time needs a schedule')
    return
  }
  const names = { required: ['startsAtMs', 'everyS', 'count'] } as const
  const { startsAtMs, everyS, count } = readMembers(schedule, names, (details) => malformed(`schedule: ${details}`))
  assertNatural('schedule.startsAtMs', startsAtMs)
  assertNatural('schedule.everyS', everyS, 1)
  assertNatural('schedule.count', count, 1)
  assertList('time', time, assertTimeSource)
  // A schedule counts nonces, so it can't limit signatures without one.
  if (rules.some(({ kind }) => kind !== 'transaction')) throw malformed('a schedule allows only transaction rules')
}

function assertTimeSource(path: string, value: unknown): asserts value is TimeSource {
  if (!isEntropyForm(value) || value.kind === 'unsigned') throw noSource(path)
}

function noWitness(path: string) {
  return malformed(`${path} is not an Ed25519 key in hex`)
}

function noSource(path: string) {
  return malformed(`${path} is not a source that signs`)
}

function toBytes(value: unknown): Uint8Array<ArrayBuffer> {
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = toCanonicalJson(value)
  } catch (cause) {
    throw malformed('JSON cannot represent it without loss', cause)
  }
  if (bytes.length > MAX_POLICY_BYTES) throw tooLarge()
  return bytes
}

function tooLarge() {
  const details = `more than ${MAX_POLICY_BYTES} bytes`
  return new VaultPolicyError('vault_policy_too_large', 'the policy is too large', { details })
}
