import type { Env, Fault } from './readEnv.ts'

/**
 * Chains whose money is worth nothing, by id: all that a service on simulated silicon may sign for or publish to. The ids are those of
 * https://chainid.network (ethereum-lists/chains), and for local nodes those that hardhat, anvil and geth take by themselves.
 */
export const testChainIds: readonly number[] = [
  1337, // a local node (geth --dev)
  17000, // Holesky
  31337, // a local node (hardhat, anvil)
  80002, // Polygon Amoy
  84532, // Base Sepolia
  421614, // Arbitrum Sepolia
  560048, // Hoodi
  11155111, // Sepolia
  11155420, // OP Sepolia
]

/** Reports each of a setting's chains that staging must not touch. */
export function refuseRealChains(name: keyof Env & string, chainIds: readonly number[], fault: Fault): void {
  for (const chainId of chainIds) {
    if (!testChainIds.includes(chainId)) {
      fault(`${name}: ${chainId} is not one of the test networks that staging may use: ${testChainIds.join(', ')}`)
    }
  }
}
