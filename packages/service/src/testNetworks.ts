import { chains } from '@countersign/protocol/core'
import type { Env, Fault } from './readEnv.ts'

/** Chains whose money is worth nothing, by id: all that a service on simulated silicon may sign for or publish to. */
export const testChainIds: readonly number[] = Object.keys(chains)
  .map(Number)
  .filter((id) => chains[id]?.isTest)

/** Reports each of a setting's chains that staging must not touch. */
export function refuseRealChains(name: keyof Env & string, chainIds: readonly number[], fault: Fault): void {
  for (const chainId of chainIds) {
    if (!testChainIds.includes(chainId)) {
      fault(name, `${chainId} is not one of the test networks that staging may use: ${testChainIds.join(', ')}`)
    }
  }
}
