import type { Rule } from './policy.ts'

/** Which chains a service signs for. */
export type SignedChains = {
  /** Undefined: any. */
  chainIds: readonly number[] | undefined
  /** Whether it refuses typed data that names no chain. */
  isChainRequired?: boolean | undefined
}

/** Whether a service can ever sign by a rule, as far as chains go: one for other chains only would lock in what it is for. */
export function canSignOnChains(rule: Rule, { chainIds, isChainRequired = false }: SignedChains): boolean {
  const isSigned = (chainId: number | undefined) =>
    chainId === undefined ? !isChainRequired : (chainIds?.includes(chainId) ?? true)
  if (rule.kind === 'transaction') return rule.chainIds === 'any' || rule.chainIds.some(isSigned)
  if (rule.kind === 'typed-data') return rule.domains === 'any' || rule.domains.some(({ chainId }) => isSigned(chainId))
  return true
}
