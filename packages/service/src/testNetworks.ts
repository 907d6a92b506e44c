import { chains } from '@countersign/protocol/core'
import type { Env, Fault } from './readEnv.ts'

/** Test networks, by ID: the only chains that a service on simulated hardware may sign for or publish to. */
export const testChainIds: readonly number[] = Object.keys(chains)
  .map(Number)
  .filter((id) => chains[id]?.isTest)

/** Reports each chain in a setting that is not a test network. */
export function refuseRealChains(name: keyof Env & string, chainIds: readonly number[], fault: Fault): void {
  for (const chainId of chainIds) {
    if (!testChainIds.includes(chainId)) {
      fault(name, `expected a test network in staging (${testChainIds.join(', ')}), got ${chainId}`)
    }
  }
}
