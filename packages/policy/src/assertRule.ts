import { type Hex, isUnlimitedKind, readMembers } from '@countersign/protocol/core'
import type { ArgumentRule, ArgumentType, DomainRule, Rule, SpendForm } from './policy.ts'
import {
  assertAddress,
  assertAnyOrList,
  assertChainId,
  assertDecimal,
  assertItems,
  assertList,
  assertNatural,
  assertPrefixed,
  malformed,
} from './policyFields.ts'
import { X402_SPENDERS } from './readSpend.ts'

/** A transaction has at most 131,072 bytes of data. */
const MAX_WORDS = 4095
const IDENTIFIER = /^[A-Za-z_]\w*$/

/** Narrows to a rule with exactly the members of its kind. */
export function assertRule(path: string, value: unknown): asserts value is Rule {
  const fail = (details: string) => malformed(`${path}: ${details}`)
  const kind = (value as { kind?: unknown } | null)?.kind
  if (kind === 'transaction') return assertTransactionRule(path, value)
  if (kind === 'spend') return assertSpendRule(path, value)
  if (kind === 'typed-data') {
    const required = ['kind', 'domains', 'primaryTypes', 'approvals', 'approvers'] as const
    const { domains, primaryTypes, approvals, approvers } = readMembers(value, { required }, fail)
    assertAnyOrList(`${path}.approvers`, approvers, assertNatural)
    assertAnyOrList(`${path}.domains`, domains, assertDomain)
    assertAnyOrList(`${path}.primaryTypes`, primaryTypes, assertIdentifier)
    return assertNatural(`${path}.approvals`, approvals, 1)
  }
  if (!isUnlimitedKind(kind)) throw fail('kind is unknown')
  const { approvals, approvers } = readMembers(value, { required: ['kind', 'approvals', 'approvers'] }, fail)
  assertAnyOrList(`${path}.approvers`, approvers, assertNatural)
  assertNatural(`${path}.approvals`, approvals, 1)
}

const FORMS: readonly unknown[] = ['coin', 'transfer', 'eip3009', 'x402-permit2'] satisfies SpendForm[]

function assertSpendRule(path: string, value: unknown): void {
  const fail = (details: string) => malformed(`${path}: ${details}`)
  const required = ['kind', 'chainIds', 'payees', 'forms', 'approvals', 'approvers', 'session'] as const
  const rule = readMembers(value, { required, optional: ['spenders'] }, fail)
  assertList(`${path}.chainIds`, rule.chainIds, assertChainId)
  assertAnyOrList(`${path}.payees`, rule.payees, assertAddress)
  assertList(`${path}.forms`, rule.forms, assertForm)
  // Empty if the session suffices: a policy may have no approvers.
  assertItems(`${path}.approvers`, rule.approvers, assertNatural)
  if (typeof rule.session !== 'boolean') throw fail('session is not a boolean')
  assertNatural(`${path}.approvals`, rule.approvals, rule.session ? 0 : 1)
  if (rule.forms.includes('x402-permit2') !== (rule.spenders !== undefined)) {
    throw fail('spenders belongs to the form x402-permit2, and to no other')
  }
  if (rule.spenders === undefined) return
  assertList(`${path}.spenders`, rule.spenders, assertAddress)
  // Permit2 doesn't enforce the payee. Only contracts that are known to do so may be combined with a list of payees.
  if (rule.payees !== 'any' && !rule.spenders.every((spender) => X402_SPENDERS.includes(spender))) {
    throw fail('spenders other than x402’s need payees "any"')
  }
}

function assertForm(path: string, value: unknown): asserts value is SpendForm {
  if (!FORMS.includes(value)) throw malformed(`${path} is unknown`)
}

function assertTransactionRule(path: string, value: unknown): void {
  const required = ['kind', 'chainIds', 'to', 'maxValueWei', 'maxFeeWei', 'approvals', 'approvers'] as const
  const optional = ['selectors', 'words', 'arguments'] as const
  const rule = readMembers(value, { required, optional }, (details) => malformed(`${path}: ${details}`))
  assertAnyOrList(`${path}.chainIds`, rule.chainIds, assertChainId)
  assertAnyOrList(`${path}.to`, rule.to, assertAddress)
  assertDecimal(`${path}.maxValueWei`, rule.maxValueWei)
  assertDecimal(`${path}.maxFeeWei`, rule.maxFeeWei)
  assertNatural(`${path}.approvals`, rule.approvals)
  assertAnyOrList(`${path}.approvers`, rule.approvers, assertNatural)
  if (rule.selectors === undefined) {
    const isAlone = rule.words === undefined && rule.arguments === undefined
    if (!isAlone) throw malformed(`${path}: words and arguments need selectors`)
    return
  }
  const { words } = rule
  assertList(`${path}.selectors`, rule.selectors, assertSelector)
  assertNatural(`${path}.words`, words)
  if (words > MAX_WORDS) throw malformed(`${path}.words is more than ${MAX_WORDS}`)
  if (rule.arguments !== undefined) assertArguments(`${path}.arguments`, rule.arguments, words)
}

function assertSelector(path: string, value: unknown): asserts value is Hex {
  assertPrefixed(path, value, 4)
}

function assertArguments(path: string, value: unknown, words: number): void {
  assertList(path, value, assertArgument)
  if (value.some(({ at }) => at >= words)) throw malformed(`${path}: a word is out of range`)
  // Two conditions on one word would be ambiguous.
  if (new Set(value.map(({ at }) => at)).size !== value.length) throw malformed(`${path}: repeated word`)
}

function assertArgument(path: string, value: unknown): asserts value is ArgumentRule {
  const names = { required: ['at', 'type'], optional: ['oneOf', 'max'] } as const
  const { at, type, oneOf, max } = readMembers(value, names, (details) => malformed(`${path}: ${details}`))
  assertNatural(`${path}.at`, at)
  if (!isArgumentType(type)) throw malformed(`${path}.type is unknown`)
  if (max !== undefined) {
    if (oneOf !== undefined) throw malformed(`${path} has both oneOf and max`)
    if (!type.startsWith('uint')) throw malformed(`${path}.max is only for integers`)
    assertDecimal(`${path}.max`, max, toBits(type))
  }
  if (oneOf !== undefined) assertList(`${path}.oneOf`, oneOf, (one, item) => assertArgumentValue(one, item, type))
}

function assertArgumentValue(path: string, value: unknown, type: ArgumentType): asserts value is string | boolean {
  if (type === 'address') assertAddress(path, value)
  else if (type === 'bytes32') assertPrefixed(path, value, 32)
  else if (type !== 'bool') assertDecimal(path, value, toBits(type))
  else if (typeof value !== 'boolean') throw malformed(`${path} is not a boolean`)
}

function isArgumentType(value: unknown): value is ArgumentType {
  if (value === 'address' || value === 'bool' || value === 'bytes32') return true
  if (typeof value !== 'string' || !/^uint[1-9]\d{0,2}$/.test(value)) return false
  return toBits(value) % 8 === 0 && toBits(value) <= 256
}

/** The bits of `uintN`. */
function toBits(type: string): number {
  return Number(type.slice('uint'.length))
}

function assertDomain(path: string, value: unknown): asserts value is DomainRule {
  const fail = (details: string) => malformed(`${path}: ${details}`)
  const optional = ['name', 'version', 'chainId', 'verifyingContract'] as const
  const { name, version, chainId, verifyingContract } = readMembers(value, { required: [], optional }, fail)
  if (Object.keys(value as object).length === 0) throw fail('empty domain')
  if (name !== undefined && typeof name !== 'string') throw fail('name is not a string')
  if (version !== undefined && typeof version !== 'string') throw fail('version is not a string')
  if (chainId !== undefined) assertChainId(`${path}.chainId`, chainId)
  if (verifyingContract !== undefined) assertAddress(`${path}.verifyingContract`, verifyingContract)
}

/** A struct name that EIP-712 allows. Others could never match. */
function assertIdentifier(path: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || !IDENTIFIER.test(value)) throw malformed(`${path} is not a struct name`)
}
