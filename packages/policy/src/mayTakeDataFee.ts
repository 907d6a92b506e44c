/** Chains that take nothing but gas. Arbitrum counts its price of data into the gas. */
const GAS_ONLY: readonly number[] = [1, 137, 17000, 31337, 42161, 421614, 560048, 11155111]

/**
 * Whether a chain may take a fee for data beside gas, as rollups of the OP stack do. It sets that price itself, and no field of a
 * transaction limits it. Not asked of a node: whoever approves a payment may have none for its chain.
 */
export function mayTakeDataFee(chainId: number): boolean {
  return !GAS_ONLY.includes(chainId)
}
