/** Chains as people call them, with the coin that pays there. */
const CHAINS: Readonly<Record<number, readonly [name: string, coin: string]>> = {
  1: ['Ethereum', 'ETH'],
  10: ['OP Mainnet', 'ETH'],
  137: ['Polygon', 'POL'],
  8453: ['Base', 'ETH'],
  17000: ['Holesky', 'ETH'],
  31337: ['Local chain', 'ETH'],
  42161: ['Arbitrum One', 'ETH'],
  84532: ['Base Sepolia', 'ETH'],
  421614: ['Arbitrum Sepolia', 'ETH'],
  560048: ['Hoodi', 'ETH'],
  11155111: ['Sepolia', 'ETH'],
  11155420: ['OP Sepolia', 'ETH'],
}

/** The name of a chain for people, or its number. */
export function nameChain(chainId: number): string {
  return CHAINS[chainId]?.[0] ?? `Chain ${chainId}`
}

/** The unit where it is not known which coin is meant: one may be worth more than an ether, or less. */
export const UNKNOWN_COIN = 'of the chain’s coin'

/** The unit of an amount on a chain. */
export function nameCoin(chainId: number): string {
  return CHAINS[chainId]?.[1] ?? UNKNOWN_COIN
}
