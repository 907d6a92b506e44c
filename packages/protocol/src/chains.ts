export type Chain = {
  /** The display name. */
  name: string
  /** The symbol of its native coin. */
  coin: string
  decimals: number
  /** Whether the coin is worthless, as on test networks. */
  isTest: boolean
}

const toChain = (name: string, coin: string, isTest: boolean): Chain => ({ name, coin, decimals: 18, isTest })

/** By chain ID, as in https://chainid.network (ethereum-lists/chains). Local nodes have the default IDs of hardhat, anvil and geth. */
export const chains: Readonly<Record<number, Chain>> = {
  1: toChain('Ethereum', 'ETH', false),
  10: toChain('OP Mainnet', 'ETH', false),
  137: toChain('Polygon', 'POL', false),
  1337: toChain('Local chain', 'ETH', true),
  8453: toChain('Base', 'ETH', false),
  17000: toChain('Holesky', 'ETH', true),
  31337: toChain('Local chain', 'ETH', true),
  42161: toChain('Arbitrum One', 'ETH', false),
  80002: toChain('Polygon Amoy', 'POL', true),
  84532: toChain('Base Sepolia', 'ETH', true),
  421614: toChain('Arbitrum Sepolia', 'ETH', true),
  560048: toChain('Hoodi', 'ETH', true),
  11155111: toChain('Sepolia', 'ETH', true),
  11155420: toChain('OP Sepolia', 'ETH', true),
}

/** The display name of a chain, or its number. */
export function nameChain(chainId: number): string {
  return chains[chainId]?.name ?? `Chain ${chainId}`
}

/** The unit for an unknown coin, which may be worth more or less than an ether. */
export const UNKNOWN_COIN = 'of the chain’s coin'

/** The unit of an amount on a chain. */
export function nameCoin(chainId: number): string {
  return chains[chainId]?.coin ?? UNKNOWN_COIN
}

/** Converts wei in decimal to whole coins, with all digits. */
export function toCoins(wei: string): string {
  const digits = BigInt(wei).toString().padStart(19, '0')
  const fraction = digits.slice(-18).replace(/0+$/, '')
  return `${digits.slice(0, -18)}${fraction === '' ? '' : `.${fraction}`}`
}
