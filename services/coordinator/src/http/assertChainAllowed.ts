import { CoordinatorError } from '../errors.ts'

export type ChainLimits = {
  /** Undefined: any. */
  allowedChainIds: readonly number[] | undefined
}

/** Throws `chain_not_allowed` where the operator does not sign for a chain. In typed data its number may be larger than a safe one. */
export function assertChainAllowed(chainId: bigint, { allowedChainIds }: ChainLimits): void {
  if (allowedChainIds === undefined || allowedChainIds.some((allowed) => BigInt(allowed) === chainId)) return
  throw new CoordinatorError('chain_not_allowed', 'the service does not sign for this chain')
}
