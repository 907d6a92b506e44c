import { kinds } from '@countersign/protocol/core'
import type { Rule } from './policy.ts'

/** Which chains a service signs for. */
export type SignedChains = {
  /** Undefined: any. */
  chainIds: readonly number[] | undefined
  /** Whether it refuses what contracts of every chain take. */
  isChainRequired?: boolean | undefined
}

/** Whether a service can ever sign by a rule, as far as chains go: one for other chains only would lock in what it is for. */
export function canSignOnChains(rule: Rule, { chainIds, isChainRequired = false }: SignedChains): boolean {
  const isSigned = (chainId: number | undefined) =>
    chainId === undefined ? !isChainRequired : (chainIds?.includes(chainId) ?? true)
  if (rule.kind === 'transaction') return rule.chainIds === 'any' || rule.chainIds.some(isSigned)
  if (rule.kind === 'typed-data') return rule.domains === 'any' || rule.domains.some(({ chainId }) => isSigned(chainId))
  return !(isChainRequired && kinds[rule.kind].anyChain)
}

/** Chains that take nothing but gas. Arbitrum counts its price of data into the gas. */
const GAS_ONLY: readonly number[] = [1, 137, 17000, 31337, 42161, 421614, 560048, 11155111]

/**
 * Whether a chain may take a fee for data beside gas, as rollups of the OP stack do. It sets that price itself, and no field of a
 * transaction limits it. Not asked of a node: whoever approves a payment may have none for its chain.
 */
export function mayTakeDataFee(chainId: number): boolean {
  return !GAS_ONLY.includes(chainId)
}
