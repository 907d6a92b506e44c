import type { RuleReason, TypedData } from '@countersign/protocol/core'
import type { DomainRule, TypedDataRule } from './policy.ts'

/** Why a rule doesn't allow typed data; empty if it does. `hashTypedData` has accepted it, so its domain is well formed. */
export function matchTypedData({ domains, primaryTypes }: TypedDataRule, content: TypedData): RuleReason[] {
  const reasons: RuleReason[] = []
  if (Object.hasOwn(content.domain, 'salt')) reasons.push({ code: 'domain_has_salt' })
  else if (domains !== 'any' && !domains.some((domain) => isSameDomain(domain, content.domain))) {
    reasons.push({ code: 'domain_not_allowed' })
  }
  const isPrimary = primaryTypes === 'any' || primaryTypes.includes(content.primaryType)
  return isPrimary ? reasons : [...reasons, { code: 'primary_type_not_allowed' }]
}

function isSameDomain(allowed: DomainRule, domain: Record<string, unknown>): boolean {
  const names = Object.keys(allowed) as (keyof DomainRule)[]
  if (Object.keys(domain).length !== names.length) return false
  return names.every((name) => {
    if (!Object.hasOwn(domain, name)) return false
    const value = domain[name]
    // A caller may write a chain ID in decimal or hex, and an address in either case.
    if (name === 'chainId') return BigInt(value as string | number) === BigInt(allowed.chainId as number)
    return name === 'verifyingContract' ? (value as string).toLowerCase() === allowed[name] : value === allowed[name]
  })
}
