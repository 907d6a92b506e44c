import type { Hex } from '@countersign/protocol'
import { CoordinatorError } from '../errors.ts'

/** In hex, with 0x. */
const HASH_LENGTH = 66

export type ChainLimits = {
  /** Undefined: any. */
  allowedChainIds: readonly number[] | undefined
  /** Whether what is good on every chain is refused too. */
  isChainRequired?: boolean
}

/** Throws `chain_not_allowed` where the operator does not sign for a chain. In typed data its number may be larger than a safe one. */
export function assertChainAllowed(chainId: bigint, { allowedChainIds }: ChainLimits): void {
  if (allowedChainIds === undefined || allowedChainIds.some((allowed) => BigInt(allowed) === chainId)) return
  throw new CoordinatorError('chain_not_allowed', 'the service does not sign for this chain')
}

/** A message of 32 bytes is the hash of something else, and contracts of every chain take a signature over it (Safe, meta-transactions). */
export function assertNoHash(message: Hex, { isChainRequired }: ChainLimits): void {
  if (!isChainRequired || message.length !== HASH_LENGTH) return
  const details = 'a message of 32 bytes is a hash, whose signature contracts of every chain may take'
  throw new CoordinatorError('chain_not_allowed', 'the service does not sign for every chain', { details })
}

/** Typed data may name no chain, and is then good on all of them. */
export function assertChainNamed(chainId: bigint | undefined, limits: ChainLimits): void {
  if (chainId !== undefined) assertChainAllowed(chainId, limits)
  if (chainId !== undefined || !limits.isChainRequired) return
  const details = 'the domain names no chainId, so it would be good on every chain'
  throw new CoordinatorError('chain_not_allowed', 'the service does not sign for every chain', { details })
}
