import type { Env, Fault } from '../readEnv.ts'

/**
 * Chains whose money is worth nothing, by id: all that a service on simulated silicon may sign for or publish to. The ids are those of
 * https://chainid.network (ethereum-lists/chains), and for local nodes those that hardhat, anvil and geth take by themselves.
 */
const testNetworks: Readonly<Record<number, string>> = {
  1337: 'a local node (geth --dev)',
  31337: 'a local node (hardhat, anvil)',
  17000: 'Holesky',
  80002: 'Polygon Amoy',
  84532: 'Base Sepolia',
  421614: 'Arbitrum Sepolia',
  560048: 'Hoodi',
  11155111: 'Sepolia',
  11155420: 'OP Sepolia',
}

/** In ascending order. */
export const testChainIds: readonly number[] = Object.keys(testNetworks).map(Number)

/** Whether signing for a chain moves nothing of worth. The number may be larger than a safe one: typed data may name any. */
export function isTestChain(chainId: number | bigint): boolean {
  return Object.hasOwn(testNetworks, String(chainId))
}

/** Reports each of a setting's chains that staging must not touch. */
export function refuseRealChains(name: keyof Env & string, chainIds: readonly number[], fault: Fault): void {
  for (const chainId of chainIds) {
    if (!isTestChain(chainId)) {
      fault(`${name}: ${chainId} is not one of the test networks that staging may use: ${testChainIds.join(', ')}`)
    }
  }
}
