import { startChain } from '@countersign/testing'
import { deployServiceAttestations } from '../../../contracts/deployContract.ts'

/** A real chain with the real contract, and the settings with which a coordinator publishes there. */
export async function startContract() {
  const chain = await startChain()
  const [deployer, publisher] = chain.accounts
  if (deployer === undefined || publisher === undefined) throw new Error('no accounts')
  const { address } = await deployServiceAttestations({
    rpcUrl: chain.url,
    privateKey: deployer.privateKey,
    owner: deployer.address,
    publisher: publisher.address,
  })
  const env = {
    RPC_URL: chain.url,
    CHAIN_ID: String(chain.chainId),
    ATTESTATIONS_ADDRESS: address,
    PUBLISHER_PRIVATE_KEY: publisher.privateKey,
    CONFIRMATIONS: '1',
    CONFIRM_INTERVAL_MS: '500',
    PIPELINE_DELAY_MS: '0',
  }
  return { chain, address, env }
}
