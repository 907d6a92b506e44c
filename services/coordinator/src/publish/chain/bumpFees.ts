/** EIP-1559, in wei. */
export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }

/**
 * Fees of a transaction that replaces another: at least 12.5 % more of both, and never below the market. Nodes ask for 10 %
 * of both (geth, erigon, reth, nethermind), and for more than before even where 10 % is nothing.
 */
export function bumpFees(fees: Fees, market: Fees): Fees {
  const maxPriorityFeePerGas = max(raise(fees.maxPriorityFeePerGas), market.maxPriorityFeePerGas)
  const maxFeePerGas = max(raise(fees.maxFeePerGas), market.maxFeePerGas)
  // A tip above the cap is refused.
  return { maxFeePerGas: max(maxFeePerGas, maxPriorityFeePerGas), maxPriorityFeePerGas }
}

/** By an eighth, rounded up, and by one wei at least. */
function raise(fee: bigint): bigint {
  return max((fee * 9n + 7n) / 8n, fee + 1n)
}

function max(left: bigint, right: bigint): bigint {
  return left > right ? left : right
}
