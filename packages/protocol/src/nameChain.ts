/** Chains whose coin is ether, as people call them. */
const CHAINS: Readonly<Record<number, string>> = {
  1: 'Ethereum',
  10: 'OP Mainnet',
  8453: 'Base',
  17000: 'Holesky',
  31337: 'Local chain',
  42161: 'Arbitrum One',
  84532: 'Base Sepolia',
  421614: 'Arbitrum Sepolia',
  560048: 'Hoodi',
  11155111: 'Sepolia',
  11155420: 'OP Sepolia',
}

/** The name of a chain for people, or its number. */
export function nameChain(chainId: number): string {
  return CHAINS[chainId] ?? `Chain ${chainId}`
}

/** The unit of an amount on a chain. One coin of a chain that is not known here may be worth more than an ether, or less. */
export function nameCoin(chainId: number): string {
  return chainId in CHAINS ? 'ETH' : 'of the chain’s coin'
}
