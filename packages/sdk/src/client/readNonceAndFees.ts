import type { WalletInfo } from '@countersign/protocol'
import { createError } from './errors.ts'
import { askRpc, verifyChainId } from './rpc.ts'
import type { ServiceClient } from './ServiceClient.ts'

/** What the chain says the next transaction of a wallet must have; neither can be overridden (specification §2). */
export async function readNonceAndFees(client: ServiceClient, { address }: Pick<WalletInfo, 'address'>) {
  const { publicClient } = client
  const [nonce, { maxFeePerGas, maxPriorityFeePerGas }] = await Promise.all([
    askRpc(() => publicClient.getTransactionCount({ address, blockTag: 'pending' })),
    askRpc(() => publicClient.estimateFeesPerGas()),
    verifyChainId(client),
  ])
  if (!Number.isSafeInteger(nonce) || nonce < 0) {
    throw createError('rpc_failed', 'the RPC failed', { details: `the nonce ${nonce} makes no sense` })
  }
  return { nonce, maxFeePerGas, maxPriorityFeePerGas }
}
