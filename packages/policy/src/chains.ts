import { kinds } from '@countersign/protocol/core'
import type { Rule } from './policy.ts'

/** The chains that a service signs for. */
export type SignedChains = {
  /** Undefined for any chain. */
  chainIds: readonly number[] | undefined
  /** Whether it refuses signatures that contracts on every chain accept. */
  isChainRequired?: boolean | undefined
}

/** Whether a service's chains ever allow a signature under a rule. Funds under rules for other chains only would be locked. */
export function canSignOnChains(rule: Rule, { chainIds, isChainRequired = false }: SignedChains): boolean {
  const isSigned = (chainId: number | undefined) =>
    chainId === undefined ? !isChainRequired : (chainIds?.includes(chainId) ?? true)
  if (rule.kind === 'spend') return rule.chainIds.some(isSigned)
  if (rule.kind === 'transaction') return rule.chainIds === 'any' || rule.chainIds.some(isSigned)
  if (rule.kind === 'typed-data') return rule.domains === 'any' || rule.domains.some(({ chainId }) => isSigned(chainId))
  return !(isChainRequired && kinds[rule.kind].anyChain)
}

/** Chains without fees other than gas. Arbitrum includes its data fee in the gas. */
const GAS_ONLY: readonly number[] = [1, 137, 17000, 31337, 42161, 421614, 560048, 11155111]

/**
 * Whether a chain may charge a data fee in addition to gas, as rollups of the OP stack do. The chain sets that price, and no field of a
 * transaction limits it. A fixed list, because approvers may have no node for the chain.
 */
export function mayTakeDataFee(chainId: number): boolean {
  return !GAS_ONLY.includes(chainId)
}
