import { type LocalChain, startChain } from '@countersign/testing'
import { type Environment, toPublisherEnv } from '@countersign/testing/launcher'
import type { Address } from 'viem'
import { deployLogWitness, deployServiceAttestations, type LogWitnessDeployment } from './deployContract.ts'

type Started = { chain: LocalChain; address: Address; env: Environment }
type StartedWitness = {
  logWitness: Address
  logs: LogWitnessDeployment['logs']
  /** The settings for publishing checkpoints instead of events. */
  checkpointsEnv: Environment
}

/**
 * A local chain with ServiceAttestations, and the settings that a coordinator needs to publish there. With `origins`, also LogWitness with
 * their logs. Account 0 owns both contracts, and account 1 is the publisher of both.
 */
export function startContract(options: { origins: readonly string[] }): Promise<Started & StartedWitness>
export function startContract(): Promise<Started>
export async function startContract({
  origins,
}: {
  origins?: readonly string[]
} = {}): Promise<Started & Partial<StartedWitness>> {
  const chain = await startChain()
  const [deployer, publisher] = chain.accounts
  if (deployer === undefined || publisher === undefined) throw new Error('no accounts')
  const { url: rpcUrl, chainId } = chain
  const parameters = {
    rpcUrl,
    privateKey: deployer.privateKey,
    pollingIntervalMs: 50,
    publisher: publisher.address,
  }
  const { address } = await deployServiceAttestations({ ...parameters, owner: deployer.address })
  const key = { privateKey: publisher.privateKey }
  const toEnv = (witness?: { address: Address; owner: Address }) => ({
    ...toPublisherEnv({ rpcUrl, chainId, contract: address, logWitness: witness, key, confirmIntervalMs: 500 }),
    PIPELINE_DELAY_MS: '0',
  })
  const env = toEnv()
  if (origins === undefined) return { chain, address, env }
  const { address: logWitness, logs } = await deployLogWitness({ ...parameters, origins })
  const checkpointsEnv = toEnv({ address: logWitness, owner: deployer.address })
  return { chain, address, env, logWitness, logs, checkpointsEnv }
}
