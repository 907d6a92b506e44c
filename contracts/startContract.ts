import { startChain } from '@countersign/testing'
import { toPublisherEnv } from '@countersign/testing/launcher'
import { deployServiceAttestations } from './deployContract.ts'

/** A local chain with the contract, and the settings that a coordinator needs to publish there. */
export async function startContract() {
  const chain = await startChain()
  const [deployer, publisher] = chain.accounts
  if (deployer === undefined || publisher === undefined) throw new Error('no accounts')
  const { address } = await deployServiceAttestations({
    rpcUrl: chain.url,
    privateKey: deployer.privateKey,
    owner: deployer.address,
    pollingIntervalMs: 50,
    publisher: publisher.address,
  })
  const { url: rpcUrl, chainId } = chain
  const key = { privateKey: publisher.privateKey }
  const env = {
    ...toPublisherEnv({ rpcUrl, chainId, contract: address, key, confirmIntervalMs: 500 }),
    PIPELINE_DELAY_MS: '0',
  }
  return { chain, address, env }
}
