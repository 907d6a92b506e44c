import { isNatural, type SignResult, type WalletInfo } from '@countersign/protocol'
import type { PublicClient } from 'viem'
import { broadcast } from './broadcast.ts'
import type { Connection } from './connection.ts'
import type { Call } from './parseSignRequest.ts'
import { askRpc, isKnown, rpcFailed } from './rpc.ts'
import { type SendLine, withSendLock } from './sendLock.ts'
import { signTransaction, type UnsignedTransaction } from './signTransaction.ts'
import { verifyWallet } from './verifyWallet.ts'

/** How often, and how long, an RPC is waited for that does not count our last transaction yet. */
export const NONCE_RETRIES = 3
export const NONCE_RETRY_MS = 1000

/**
 * What the chain says the next transaction of a wallet must have; neither can be overridden (specification §2). Meanwhile it
 * makes sure that the chain is the one that the transaction is meant for.
 */
export async function readNonceAndFees(client: Connection, wallet: Pick<WalletInfo, 'address'>, line: SendLine) {
  const { publicClient } = client
  const [nonce, fees] = await Promise.all([
    readNonce(publicClient, wallet, line),
    askRpc(() => publicClient.estimateFeesPerGas()),
    client.verifyChain(),
  ])
  return { nonce, ...fees }
}

/**
 * Behind one address there may be many nodes, and the one that answers may not have our last transaction yet. Its nonce would be
 * that one's again, and the second payment would replace the first.
 */
async function readNonce(publicClient: PublicClient, { address }: Pick<WalletInfo, 'address'>, { last }: SendLine) {
  for (let retries = 0; ; retries += 1) {
    const nonce = await askRpc(() => publicClient.getTransactionCount({ address, blockTag: 'pending' }))
    if (!isNatural(nonce)) throw rpcFailed(`the nonce is ${nonce}`)
    if (last === undefined || nonce > last.nonce) return nonce
    if (retries === NONCE_RETRIES) {
      if (await isKnown(publicClient, last.txHash)) throw rpcFailed(`the RPC does not count nonce ${last.nonce} yet`)
      // It was dropped: its nonce is free.
      return nonce
    }
    await new Promise((resolve) => setTimeout(resolve, NONCE_RETRY_MS))
  }
}

type SignAndSendParameters = {
  wallet: WalletInfo
  /** Whether the service is told which wallet has to sign; where it is not told, it gets exactly what specification §4 says. */
  isNamed?: boolean | undefined
  call: Call
  /** The last word before the signing: what it throws ends it. */
  assertWanted?: ((transaction: UnsignedTransaction) => void) | undefined
  /** Called between signing and broadcast. */
  onSigned?: ((signed: SignResult) => void) | undefined
}

/** The steps of specification §4; step 1 is `parseSignRequest`, before anything is sent. */
export function signAndSend(
  client: Connection,
  { wallet, isNamed, call, assertWanted, onSigned }: SignAndSendParameters,
): Promise<SignResult> {
  const { chainId } = client.config
  return withSendLock({ address: wallet.address, chainId }, async (line) => {
    const transaction = { chainId, ...call, ...(await readNonceAndFees(client, wallet, line)) } // 2, 3
    // Only now: a node can take seconds, in which somebody else may sign in.
    await verifyWallet(client, wallet)
    assertWanted?.(transaction)
    const { serializedTransaction, signed } = await signTransaction(client, { wallet, isNamed, transaction }) // 4, 5
    onSigned?.(signed)
    await broadcast(client.publicClient, { serializedTransaction, signed }) // 6
    line.last = { nonce: transaction.nonce, txHash: signed.txHash }
    return signed // 7
  })
}
