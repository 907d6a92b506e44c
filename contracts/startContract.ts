import { startChain } from '@countersign/testing'
import { toPublisherEnv } from '@countersign/testing/launcher'
import { deployServiceAttestations } from './deployContract.ts'

/** A real chain with the real contract, and the settings with which a coordinator publishes there. */
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
